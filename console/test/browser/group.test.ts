// The group chat of Try it, on a server that has groups of its own.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { allLive, expectNoFaults, FAILED_REQUEST, openWindow, startBrowser } from "../support/browser.js";
import { SECRET, Server } from "../support/server.js";

let browser: Browser;
let server: Server;
beforeAll(async () => {
  server = await Server.start({ isOpen: false });
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  await server?.remove();
});

async function start(page: Page): Promise<void> {
  await page.getByLabel("Service key").fill(SECRET);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Start the phones" }).click();
  await allLive(page);
}

/** What the page says after Ann has pressed it. */
async function sayToGroup(page: Page): Promise<string> {
  const said = page.locator(".guide .said");
  const before = await said.innerText();
  await page.getByLabel("Ann’s phone").getByRole("button", { name: "Group chat" }).click();
  await expect.poll(() => said.innerText()).not.toBe(before);
  return await said.innerText();
}

/** The members of a group, and how many messages it has. */
async function stateOf(group: string): Promise<[string[], number]> {
  const params = { path: { group } };
  const members = (await server.backend.GET("/v1/groups/{group}/members", { params })).data.items;
  return [members.map(({ user_id }) => user_id), (await server.backend.GET("/v1/groups/{group}", { params })).data.head];
}

it.each([
  ["with a stranger", "10", ["10", "11", "12", "999"]],
  ["with two of the three", "20", ["20", "21"]],
  ["without members", "30", []],
])("a group that is there already is left alone: %s", async (_, group, members) => {
  const params = { path: { group } };
  await server.backend.PUT("/v1/groups/{group}", { params, body: {} });
  if (members.length > 0) await server.backend.POST("/v1/groups/{group}/members", { params, body: { user_ids: members } });
  const users = [0, 1, 2].map((at) => Number(group) + at).join(",");
  const opened = await openWindow(browser, `${server.console}#/try/${users}`);
  await start(opened.page);
  expect(await sayToGroup(opened.page)).toContain(`Group ${group} exists already`);
  expect(await stateOf(group)).toEqual([members, 0]);
  expectNoFaults(opened, FAILED_REQUEST);
  await opened.context.close();
});

it("who is asked before the phones start reads of the group, too", async () => {
  const opened = await openWindow(browser, `${server.console}#/try/40,41,42`);
  const { page } = opened;
  await page.getByLabel("Service key").fill(SECRET);
  await page.keyboard.press("Enter");
  await page.getByText("The phones are those of the users 40, 41, 42. Their group chat is the group 40").waitFor();
  expectNoFaults(opened, FAILED_REQUEST);
  await opened.context.close();
});

it("the group that the console made is used again, also if its members came later", async () => {
  const opened = await openWindow(browser, `${server.console}#/try/50,51,52`);
  const { page } = opened;
  await start(page);
  await page.route("**/members", (route) => route.fulfill({ status: 500, body: "" }));
  expect(await sayToGroup(page)).toContain("500");
  await page.unroute("**/members");
  expect(await sayToGroup(page)).toContain("whose head is 1.");
  await page.reload();
  await start(page);
  expect(await sayToGroup(page)).toContain("whose head is 2.");
  expect(await stateOf("50")).toEqual([["50", "51", "52"], 2]);
  expectNoFaults(opened, FAILED_REQUEST);
  await opened.context.close();
});
