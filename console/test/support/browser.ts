// A real Chromium, and pages of which everything that must not happen is noted.

import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import { serveSources } from "./sources.js";

const IMAGES = fileURLToPath(new URL("../../../docs/images", import.meta.url));

declare global {
  interface Window {
    noteViolation(text: string): void;
  }
}

export async function startBrowser(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  // In a container there is no sandbox, and /dev/shm is small.
  return await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

export interface Watched {
  page: Page;
  context: BrowserContext;
  /** What the browser complained of: errors of the page, its policy, requests that leave the server. */
  faults: string[];
}

/** A window of its own: nothing is shared with those of other tests. */
export async function openWindow(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  await serveSources(context);
  return await openTab(context, url);
}

/** Another tab beside those of the context. */
export async function openTab(context: BrowserContext, url: string): Promise<Watched> {
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const faults: string[] = [];
  const { origin } = new URL(url);
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const isOwn = request.url().startsWith(`${origin}/`) || request.url().startsWith("data:");
    if (!isOwn) faults.push(`request: ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.exposeFunction("noteViolation", (text: string) => faults.push(`policy: ${text}`));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      window.noteViolation(`${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  await page.goto(url);
  return { page, context, faults };
}

/** Nothing went wrong, apart from what the test itself brought about. */
export function expectNoFaults({ faults }: Watched, expected: RegExp = /^$/): void {
  expect(faults.filter((fault) => !expected.test(fault))).toEqual([]);
}

/** What Chromium says of a request that fails: the server is away, or refuses it. */
export const FAILED_REQUEST = /^console: Failed to load resource: (net::ERR_|the server responded with a status of)/;

/** Writes a picture of the docs, if pictures are asked for. */
export async function picture(page: Page, name: string, height?: number): Promise<void> {
  if (process.env.SCREENSHOTS !== "1") return;
  await mkdir(IMAGES, { recursive: true });
  const clip = height === undefined ? {} : { clip: { x: 0, y: 0, width: page.viewportSize()?.width ?? 1280, height } };
  await page.mouse.move(0, 0);
  await page.screenshot({ path: `${IMAGES}/console-${name}.png`, animations: "disabled", ...clip });
}

/** The number in a pill: `data-row` of a phone's row, or the total. */
export async function unread(page: Page, phone: string, row: string): Promise<string> {
  return (
    (await page.getByLabel(`${phone}’s phone`).locator(`[data-row="${row}"] .pill`).innerText()).split("\n")[0]?.split(" ")[0] ??
    ""
  );
}

export async function total(page: Page, phone: string): Promise<string | null> {
  return await page.getByLabel(`${phone}’s phone`).locator("[data-total]").getAttribute("data-total");
}

/** All three phones have heard from the server. */
export async function allLive(page: Page): Promise<void> {
  await expect.poll(() => page.locator(".state.live").count(), { timeout: 15_000 }).toBe(3);
}

export async function doStep(page: Page): Promise<string> {
  const title = page.locator(".guide h2");
  const before = await title.innerText();
  await page.getByRole("button", { name: "Do it" }).click();
  await expect.poll(() => title.innerText(), { timeout: 15_000 }).not.toBe(before);
  return await page.locator(".said").first().innerText();
}
