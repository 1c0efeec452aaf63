// How texts stand on the page: words in one piece, texts of users apart from those of the page, columns that can be read.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectNoFaults, openWindow, startBrowser } from "../support/browser.js";
import { LONGEST, seed } from "../support/seed.js";
import { Server } from "../support/server.js";
import { brokenWords, loose, readsForward } from "../support/texts.js";

const USER = "4711";

/** It turns what follows around, and ends an isolate that is made of characters. */
const TURNED = "\u2069\u202egpj.exe";

let browser: Browser;
let server: Server;
beforeAll(async () => {
  server = await Server.start();
  browser = await startBrowser();
  await seed(server.backend, USER);
});
afterAll(async () => {
  await browser?.close();
  await server?.remove();
});

const lookUp = async (width: number, user = USER) => {
  const opened = await openWindow(browser, `${server.console}#/lookup/${user}`, { viewport: { width, height: 812 } });
  await opened.page.getByText("The poll and the rows agree").waitFor();
  await opened.page.getByLabel("Inbox", { exact: true }).locator("tbody tr").first().waitFor();
  await opened.page.getByLabel("Devices", { exact: true }).locator("tbody tr").first().waitFor();
  await opened.page.getByLabel("Show what was written").check();
  return opened;
};

describe.each([375, 768, 1280])("at a width of %i", (width) => {
  it("no word of a table breaks", async () => {
    const opened = await lookUp(width);
    expect(await brokenWords(opened.page)).toEqual([]);
    await opened.context.close();
  });

  it("a note takes no more than two lines", async () => {
    const opened = await lookUp(width);
    const heights = await opened.page
      .getByLabel("Unread summary, explained")
      .locator("tbody tr")
      .evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().height));
    expect(heights.length).toBeGreaterThan(5);
    expect(Math.max(...heights)).toBeLessThan(64);
    await opened.context.close();
  });
});

it("a device's lag is in view without scrolling, whatever its id, on a desk", async () => {
  const opened = await lookUp(1280);
  const table = opened.page.getByLabel("Table: Devices");
  const { inner, outer } = await table.evaluate(({ scrollWidth, clientWidth }) => ({ inner: scrollWidth, outer: clientWidth }));
  expect(inner).toBeLessThanOrEqual(outer);
  await opened.context.close();
});

it("a table that goes on beyond its edge shows it", async () => {
  const opened = await lookUp(375);
  const table = opened.page.getByLabel("Table: Inbox");
  const { inner, outer, shade } = await table.evaluate((element) => ({
    inner: element.scrollWidth,
    outer: element.clientWidth,
    shade: getComputedStyle(element).backgroundAttachment,
  }));
  expect(inner).toBeGreaterThan(outer);
  expect(shade).toBe("local, local, scroll, scroll");
  await opened.context.close();
});

it("the tab names the user", async () => {
  const opened = await lookUp(1280);
  expect(await opened.page.title()).toBe(`User ${USER} · Headmark console`);
  await opened.page.getByRole("link", { name: "Health" }).click();
  await expect.poll(() => opened.page.title()).toBe("Health · Headmark console");
  await opened.context.close();
});

it("a command stays in one piece on a phone, and the key has the whole width", async () => {
  const closed = await Server.start({ isOpen: false });
  const opened = await openWindow(browser, closed.console, { viewport: { width: 375, height: 812 } });
  const { page } = opened;
  await page.getByLabel("Service key").waitFor();
  const lines = await page.getByText("headmark token --service NAME").evaluate((code) => [...code.getClientRects()].length);
  expect(lines).toBe(1);
  const [input, form] = await Promise.all([page.locator("#key").boundingBox(), page.locator("form").boundingBox()]);
  expect(input?.width).toBe(form?.width);
  await opened.context.close();
  await closed.remove();
});

it("on a phone, the buttons of a row stay beside its label and are large enough for a finger", async () => {
  const viewport = { width: 375, height: 812 };
  const opened = await openWindow(browser, `${server.console}#/try/41,42,43`, { viewport, hasTouch: true, isMobile: true });
  const row = opened.page.getByLabel("Ann’s phone").locator(".towards").first();
  await row.waitFor();
  const label = await row.locator("label").boundingBox();
  for (const button of await row.getByRole("button").all()) {
    const box = await button.boundingBox();
    expect(box?.x).toBeGreaterThanOrEqual((label?.x ?? 0) + 38);
    expect(box?.height).toBeGreaterThanOrEqual(40);
  }
  await opened.context.close();
});

it("an address of any length fits a phone", async () => {
  for (const hash of [`#/${"x".repeat(200)}`, `#/try/${"7".repeat(200)}`, `#/lookup/${"7".repeat(200)}`]) {
    const opened = await openWindow(browser, server.console + hash, { viewport: { width: 375, height: 812 } });
    await opened.page.locator("main h1").waitFor();
    expect(await opened.page.evaluate(() => document.documentElement.scrollWidth), hash.slice(0, 12)).toBe(375);
    await opened.context.close();
  }
});

it("texts that turn the direction around turn nothing but themselves", async () => {
  const user = "4712";
  const params = { path: { user } };
  const body = { type: "notice", title: TURNED, content: TURNED, recipients: [user] };
  await server.backend.POST("/v1/notifications", { body });
  await server.backend.POST("/v1/users/{user}/inbox", {
    params,
    body: { sender_id: LONGEST, client_id: "turned", content: TURNED },
  });
  const device = { path: { user, device_id: "phone" } };
  await server.backend.PUT("/v1/users/{user}/devices/{device_id}/cursor", { params: device, body: { seq: 1 } });
  const opened = await lookUp(1280, user);
  const { page } = opened;
  await expect.poll(() => page.getByText(TURNED).count()).toBe(2);
  expect(await loose(page)).toEqual([]);
  expect(
    await page
      .locator("bdi")
      .first()
      .evaluate((bdi) => getComputedStyle(bdi).display),
  ).toBe("inline-block");
  await page.goto(`${server.console}#/try/${encodeURIComponent(TURNED)}`);
  await page.getByText("These are not three users").waitFor();
  expect(await loose(page)).toEqual([]);
  expect(await readsForward(page, "main .card p", "It must name", "three different ids")).toBe(true);
  await page.goto(`${server.console}#/lookup/${encodeURIComponent(TURNED)}`);
  await page.getByText("A user id is a whole number").waitFor();
  expect(await loose(page)).toEqual([]);
  expectNoFaults(opened);
  await opened.context.close();
});
