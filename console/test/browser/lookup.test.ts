// Look up, in a real browser against the real server.

import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectNoFaults, FAILED_REQUEST, openWindow, picture, startBrowser } from "../support/browser.js";
import { FOLLOWERS, HOSTILE, LONGEST, seed } from "../support/seed.js";
import { Server, TIERS } from "../support/server.js";

const USER = "4711";

/** The cells of the row that begins with this text. */
async function cells(section: Locator, name: string): Promise<string[]> {
  const row = section.locator("tbody tr").filter({ has: section.page().locator("td:first-child", { hasText: name }) });
  return (await row.first().locator("td").allInnerTexts()).map((text) => text.trim());
}

async function look(page: Page, user: string): Promise<void> {
  await page.getByLabel("User id").fill(user);
  await page.keyboard.press("Enter");
}

describe.each(TIERS)("Look up on the %s tier", (tier) => {
  let browser: Browser;
  let server: Server;
  beforeAll(async () => {
    server = await Server.start({ tier });
    browser = await startBrowser();
    await seed(server.backend, USER);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.remove();
  });

  it("a summary with its explanation", async () => {
    const opened = await openWindow(browser, `${server.console}#/lookup`);
    const { page } = opened;
    await look(page, USER);
    const summary = page.getByLabel("Unread summary, explained");
    await summary.getByText("The poll and the rows agree").waitFor();
    expect(await cells(summary, "counter like")).toEqual(["counter like", "3", "3", "7", "3", "1", "taken back: 5"]);
    expect(await cells(summary, `posts of ${LONGEST}`)).toEqual([`posts of ${LONGEST}`, "", "1", "1", "0", "0", ""]);
    expect(await cells(summary, "chats")).toEqual(["chats", "46", "46", "", "", "", "1 group, 2 direct chats"]);
    expect(await summary.locator(".fact.large dd").innerText()).toBe("50");
    expect(page.url()).toContain(`#/lookup/${USER}`);
    await picture(page, "lookup");
    await server.backend.POST("/v1/users/{user}/badges/{badge}/increment", { params: { path: { user: USER, badge: "like" } } });
    await page.getByRole("button", { name: "Look again" }).click();
    await expect.poll(() => cells(summary, "counter like").then((row) => row[1])).toBe("4");
    expectNoFaults(opened);
    await opened.context.close();
  });

  it("relations, page by page, and two users compared", async () => {
    const opened = await openWindow(browser, `${server.console}#/lookup/${USER}`);
    const { page } = opened;
    const relations = page.getByLabel("Relations", { exact: true });
    const rows = () => relations.locator("tbody tr").count();
    await relations.getByText(`Followers ${FOLLOWERS}`).waitFor();
    await expect.poll(rows).toBe(20);
    await relations.getByRole("button", { name: "Show more" }).click();
    await expect.poll(rows).toBe(40);
    await relations.getByRole("button", { name: "Show more" }).click();
    await expect.poll(rows).toBe(FOLLOWERS);
    expect(await relations.getByRole("button", { name: "Show more" }).count()).toBe(0);
    await relations.getByText("Blocked 1").click();
    await relations.getByRole("link", { name: "77", exact: true }).waitFor();
    await relations.getByLabel("And user").fill("77");
    await page.keyboard.press("Enter");
    await relations.getByText(`${USER} does not follow 77 and blocks them. 77 does not follow ${USER}.`).waitFor();
    await relations.getByLabel("And user").fill(LONGEST);
    await page.keyboard.press("Enter");
    await relations.getByText(`${USER} follows ${LONGEST} (in secret).`).waitFor();
    await relations.getByLabel("And user").fill("nobody");
    await page.keyboard.press("Enter");
    await relations.getByText(/^400 invalid_/).waitFor();
    await relations.getByText("Following 1").click();
    await relations.getByRole("link", { name: LONGEST }).click();
    await page.getByRole("heading", { name: `User ${LONGEST}` }).waitFor();
    expectNoFaults(opened, FAILED_REQUEST);
    await opened.context.close();
  });

  it("chats, devices, notifications and the inbox; what strangers wrote is text", async () => {
    const opened = await openWindow(browser, `${server.console}#/lookup/${USER}`);
    const { page } = opened;
    const chats = page.getByLabel("Chats", { exact: true });
    await expect.poll(() => cells(chats, USER).then((row) => row.slice(0, 6))).toEqual([USER, "1", "1", "0", "0", "all"]);
    await expect.poll(() => cells(chats, LONGEST).then((row) => row.slice(0, 2))).toEqual([LONGEST, "23"]);
    const devices = page.getByLabel("Devices", { exact: true });
    await expect.poll(() => cells(devices, "xxx").then((row) => row.slice(1, 3))).toEqual(["40", "5"]);
    await page.getByLabel("Notifications", { exact: true }).getByText(HOSTILE).waitFor();
    const inbox = page.getByLabel("Inbox", { exact: true });
    const seqs = async () => (await inbox.locator("tbody td:first-child").allInnerTexts()).map(Number);
    await expect.poll(seqs).toEqual(Array.from({ length: 20 }, (_, at) => 45 - at));
    expect(await inbox.innerText(), "nobody asked for private texts").not.toContain("onerror");
    await inbox.getByLabel("Show what was written").check();
    await inbox.getByText(HOSTILE).waitFor();
    for (const length of [40, 45]) {
      await inbox.getByRole("button", { name: "Show more" }).click();
      await expect.poll(seqs).toEqual(Array.from({ length }, (_, at) => 45 - at));
    }
    expect(await inbox.getByRole("button", { name: "Show more" }).count()).toBe(0);
    expect(await page.locator("main img, main b:text-is('bold')").count()).toBe(0);
    expectNoFaults(opened);
    await opened.context.close();
  });

  it("a user without anything, ids that are none, and links that a stranger made", async () => {
    const opened = await openWindow(browser, `${server.console}#/lookup/123456`);
    const { page } = opened;
    await page.getByText("The poll and the rows agree").waitFor();
    for (const text of ["In no group.", "No direct chat.", "No device has stored", "No notification.", "Nothing has come"]) {
      await page.getByText(text).waitFor();
    }
    await look(page, LONGEST);
    await page.getByRole("heading", { name: `User ${LONGEST}` }).waitFor();
    await page.getByText("The poll and the rows agree").waitFor();
    for (const wrong of ["9223372036854775808", "0", "me", "-1", "../../x", HOSTILE]) {
      await page.goto(`${server.console}#/lookup/${encodeURIComponent(wrong)}`);
      await page.getByText("A user id is a whole number").waitFor();
      expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe(`User ${wrong}`);
    }
    await page.goto(`${server.console}#/try/${encodeURIComponent(HOSTILE)}`);
    await page.getByText("These are not three users").waitFor();
    expect(await page.locator("main img").count()).toBe(0);
    expectNoFaults(opened);
    await opened.context.close();
  });
});
