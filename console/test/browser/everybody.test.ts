// For everybody: dark and light, a phone's width, the keyboard alone, assistive technology.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectAccessible } from "../support/axe.js";
import {
  allLive,
  doStep,
  expectNoFaults,
  FAILED_REQUEST,
  openWindow,
  picture,
  startBrowser,
  unread,
} from "../support/browser.js";
import { LONGEST, seed } from "../support/seed.js";
import { Server } from "../support/server.js";

const USER = "4711";

let browser: Browser;
let open: Server;
let closed: Server;
beforeAll(async () => {
  open = await Server.start();
  closed = await Server.start({ isOpen: false });
  browser = await startBrowser();
  await seed(open.backend, USER);
});
afterAll(async () => {
  await browser?.close();
  await open?.remove();
  await closed?.remove();
});

/** Each part with something in it. */
const PARTS: [string, string, (page: Page) => Promise<unknown>][] = [
  ["try", `#/try/${LONGEST},9223372036854775806,9223372036854775805`, (page) => allLive(page).then(() => doStep(page))],
  ["look up", `#/lookup/${USER}`, (page) => page.getByLabel("Inbox", { exact: true }).getByText("45", { exact: true }).waitFor()],
  ["nobody", "#/lookup", (page) => page.getByText("When somebody complains").waitFor()],
  ["health", "#/health", (page) => page.locator("[data-chart]").first().waitFor()],
];

describe.each(["light", "dark"] as const)("in %s", (colorScheme) => {
  it.each(PARTS)("axe finds nothing: %s", async (_, hash, ready) => {
    for (const width of [1280, 375]) {
      const opened = await openWindow(browser, open.console + hash, { colorScheme, viewport: { width, height: 900 } });
      await ready(opened.page);
      await expectAccessible(opened.page);
      expectNoFaults(opened);
      await opened.context.close();
    }
  });

  it("axe finds nothing: the key, a refusal, the consent, a server that is away", async () => {
    const opened = await openWindow(browser, closed.console, { colorScheme });
    const { page } = opened;
    await page.getByLabel("Service key").fill("a-wrong-key-of-16-and-more");
    await expectAccessible(page);
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    await expectAccessible(page);
    await page.route("**/v1/**", (route) => route.abort());
    await page.reload();
    await page.getByText("The server is away").waitFor();
    await expectAccessible(page);
    expectNoFaults(opened, FAILED_REQUEST);
    await opened.context.close();
  });

  it("the ground is of that scheme", async () => {
    const opened = await openWindow(browser, open.console, { colorScheme });
    const ground = await opened.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const [red = 0] = (/\d+/.exec(ground) ?? []).map(Number);
    expect(red > 128).toBe(colorScheme === "light");
    await opened.context.close();
  });
});

it.each(PARTS)("at a phone's width nothing is cut off: %s", async (_, hash, ready) => {
  const opened = await openWindow(browser, open.console + hash, { viewport: { width: 375, height: 812 }, hasTouch: true });
  const { page } = opened;
  await ready(page);
  const { width, tooWide, small } = await page.evaluate(() => ({
    width: document.documentElement.scrollWidth,
    // What scrolls in itself may be wider.
    tooWide: [...document.querySelectorAll("main *")]
      .filter((element) => !element.closest(".scroll, .log, pre, svg, .sr") && element.getBoundingClientRect().right > 375.5)
      .map((element) => element.outerHTML.slice(0, 120)),
    small: [...document.querySelectorAll<HTMLElement>("button, select, input:not([type=checkbox]):not(.sr)")]
      .filter((element) => element.offsetHeight > 0 && element.offsetHeight < 24)
      .map((element) => element.outerHTML.slice(0, 120)),
  }));
  expect({ width, tooWide, small }).toEqual({ width: 375, tooWide: [], small: [] });
  if (hash.startsWith("#/try")) await picture(page, "phone");
  expectNoFaults(opened);
  await opened.context.close();
});

it("the keyboard alone: a step of the guide, a row, another part, a user, a list", async () => {
  const opened = await openWindow(browser, `${open.console}#/try/31,32,33`);
  const { page } = opened;
  await allLive(page);
  const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() ?? "");
  /** Tab until it has the focus, which everybody can see. */
  const tabTo = async (text: RegExp) => {
    for (let at = 0; at < 80 && !text.test(await focused()); at += 1) await page.keyboard.press("Tab");
    expect(await focused()).toMatch(text);
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement ?? document.body).outlineWidth);
    expect(Number.parseFloat(outline)).toBeGreaterThanOrEqual(2);
  };
  await page.keyboard.press("Tab");
  expect(await focused()).toBe("Skip to the content");
  await page.keyboard.press("Enter");
  await tabTo(/^Do it$/);
  await page.keyboard.press("Enter");
  await expect.poll(() => unread(page, "Ann", "counters.like")).toBe("1");
  expect(await focused(), "the focus stays").toBe("Do it");
  await tabTo(/^Likes/);
  await page.keyboard.press("Space");
  await expect.poll(() => unread(page, "Ann", "counters.like")).toBe("0");
  await page.evaluate(() => (document.activeElement as HTMLElement).blur());
  await tabTo(/^Look up$/);
  await page.keyboard.press("Enter");
  await page.getByText("When somebody complains").waitFor();
  expect(await page.getByLabel("User id").evaluate((input) => input === document.activeElement)).toBe(true);
  await page.keyboard.type(USER);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: `User ${USER}` }).waitFor();
  await page.getByText("The poll and the rows agree").waitFor();
  await page.locator('input[name="list"]').first().focus();
  await page.keyboard.press("ArrowRight");
  await page.getByLabel("Relations", { exact: true }).getByText(LONGEST).waitFor();
  const inbox = page.getByLabel("Inbox", { exact: true });
  await inbox.getByRole("button", { name: "Show more" }).focus();
  for (const [shown, has] of [
    [40, "Show more"],
    [45, "This is all."],
  ] as const) {
    await page.keyboard.press("Enter");
    await expect.poll(() => inbox.locator("tbody tr").count()).toBe(shown);
    await expect.poll(focused).toBe(has);
  }
  expectNoFaults(opened);
  await opened.context.close();
});
