// Try it, in a real browser against the real server.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  allLive,
  doStep,
  expectNoFaults,
  FAILED_REQUEST,
  openTab,
  openWindow,
  picture,
  startBrowser,
  total,
  unread,
} from "../support/browser.js";
import { Server, TIERS } from "../support/server.js";

describe.each(TIERS)("Try it on the %s tier", (tier) => {
  let browser: Browser;
  let server: Server;
  beforeAll(async () => {
    server = await Server.start({ tier });
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.remove();
  });
  const summary = async (user: string) =>
    (await server.backend.GET("/v1/users/{user}/badges", { params: { path: { user } } })).data;

  it("the guide shows what the server has, step by step", async () => {
    const opened = await openWindow(browser, server.console);
    const { page } = opened;
    await allLive(page);
    expect(await doStep(page)).toContain("her head is 1 now");
    expect([await unread(page, "Ann", "counters.like"), await total(page, "Ann"), await total(page, "Bob")]).toEqual([
      "1",
      "1",
      "0",
    ]);
    expect(await doStep(page)).toContain("read up to 1");
    expect(await unread(page, "Ann", "counters.like")).toBe("0");
    expect(await doStep(page)).toContain("Bob’s like is at 3 and stays unread");
    expect(await unread(page, "Ann", "counters.like")).toBe("1");
    expect(await doStep(page)).toContain("The head stays 4, and one is unread");
    const likes = page.getByLabel("Ann’s phone").locator('[data-row="counters.like"]');
    await expect.poll(() => likes.locator(".cell.gone").innerText()).toBe("4");
    expect(await likes.locator(".ends").innerText()).toBe("mark 2 · head 4");
    await doStep(page);
    for (const name of ["Ann", "Bob", "Cleo"]) expect(await unread(page, name, "broadcasts.news")).toBe("1");
    await doStep(page);
    expect([await unread(page, "Bob", "broadcasts.news"), await unread(page, "Cleo", "broadcasts.news")]).toEqual(["0", "1"]);
    await picture(page, "try");
    await doStep(page);
    await expect.poll(() => unread(page, "Cleo", "feed")).toBe("1");
    await doStep(page);
    await expect.poll(() => unread(page, "Cleo", "chats")).toBe("1");
    expect(await page.locator(".guide h2").innerText()).toBe("Now try it yourself");
    await page.emulateMedia({ colorScheme: "dark" });
    await picture(page, "dark");
    const [ann, cleo] = [await summary("900001"), await summary("900003")];
    expect(ann.counters?.like).toEqual({ unread: 1, head: 4 });
    expect([ann.total, cleo.total]).toEqual([Number(await total(page, "Ann")), Number(await total(page, "Cleo"))]);
    expectNoFaults(opened);
    await opened.context.close();
  });

  it("an address that is wrong says so, and where to go", async () => {
    const opened = await openWindow(browser, `${server.console}#/try/1,2`);
    const { page } = opened;
    await page.getByText("These are not three users").waitFor();
    await page.getByRole("link", { name: "Take the usual three" }).click();
    await allLive(page);
    await page.goto(`${server.console}#/helth`);
    await page.getByRole("heading", { name: "There is no such page" }).waitFor();
    await page.getByRole("main").getByRole("link", { name: "Health" }).click();
    await page.getByText("Database").first().waitFor();
    expectNoFaults(opened);
    await opened.context.close();
  });

  it("every request of a phone is listed with its status, revision and tag", async () => {
    const opened = await openWindow(browser, `${server.console}#/try/501,502,503`);
    const { page } = opened;
    await allLive(page);
    const log = page.getByLabel("Requests of Ann’s phone");
    await expect.poll(() => log.locator(".held").innerText()).toMatch(/^held \d+ s$/);
    const first = log.locator("li").last();
    expect(await first.innerText()).toMatch(/^GET \/users\/501\/badges\n+200\s+[\d.]+ m?s\s+revision \d+\s+tag …\w+/);
    const tag = await first.locator("code[title]").getAttribute("title");
    const query = await fetch(`${server.baseUrl}/v1/users/501/badges`, { headers: { "if-none-match": tag ?? "" } });
    expect(query.status).toBe(304);
    await server.backend.POST("/v1/users/{user}/badges/{badge}/increment", {
      params: { path: { user: "501", badge: "like" } },
      body: { by: 1200 },
    });
    await expect.poll(() => unread(page, "Ann", "counters.like")).toBe("1.2K");
    expectNoFaults(opened);
    await opened.context.close();
  });

  it("every button does what it says", async () => {
    const opened = await openWindow(browser, `${server.console}#/try/601,602,603`);
    const { page } = opened;
    await allLive(page);
    const phone = (name: string) => page.getByLabel(`${name}’s phone`);
    const press = (name: string, button: string) => phone(name).getByRole("button", { name: button, exact: true }).click();
    const open = (name: string, row: string) => phone(name).locator(`[data-row="${row}"]`).click();
    const shows = (name: string, row: string, number: string) =>
      expect.poll(() => unread(page, name, row), { timeout: 10_000 }).toBe(number);
    await press("Ann", "Unlike");
    expect(await page.locator(".guide .said").innerText()).toContain("has not liked");
    await press("Ann", "Like");
    await shows("Bob", "counters.like", "1");
    await press("Ann", "Unlike");
    await shows("Bob", "counters.like", "0");
    await phone("Bob").getByLabel("To", { exact: true }).selectOption("603");
    await press("Bob", "Follow");
    await phone("Bob").getByRole("button", { name: "Unfollow" }).waitFor();
    await press("Cleo", "Post");
    await shows("Bob", "feed", "1");
    await open("Bob", "feed");
    await shows("Bob", "feed", "0");
    await press("Cleo", "Post");
    await shows("Bob", "feed", "1");
    await press("Bob", "Unfollow");
    await shows("Bob", "feed", "0");
    await press("Cleo", "Message");
    await press("Ann", "Group chat");
    await shows("Ann", "chats", "1");
    await shows("Bob", "chats", "1");
    await open("Ann", "chats");
    await shows("Ann", "chats", "0");
    expect((await summary("601")).chats?.unread).toBe(0);
    const before = Number(await unread(page, "Cleo", "broadcasts.news"));
    await press("Ann", "Broadcast");
    await shows("Cleo", "broadcasts.news", String(before + 1));
    await open("Cleo", "broadcasts.news");
    await shows("Cleo", "broadcasts.news", "0");
    expectNoFaults(opened);
    await opened.context.close();
  });

  it("two windows of the same users stay in step, and polls leave room for other requests", async () => {
    const users = `${server.console}#/try/701,702,703`;
    const one = await openWindow(browser, users);
    const two = await openTab(one.context, users);
    await Promise.all([allLive(one.page), allLive(two.page)]);
    const like = () => one.page.getByLabel("Bob’s phone").getByRole("button", { name: "Like", exact: true }).click();
    await like();
    for (const { page } of [one, two])
      await expect.poll(() => unread(page, "Ann", "counters.like"), { timeout: 5_000 }).toBe("1");
    await two.page.getByLabel("Ann’s phone").locator('[data-row="counters.like"]').click();
    for (const { page } of [two, one])
      await expect.poll(() => unread(page, "Ann", "counters.like"), { timeout: 5_000 }).toBe("0");
    for (let at = 0; at < 5; at += 1) await like();
    for (const { page } of [one, two])
      await expect.poll(() => unread(page, "Ann", "counters.like"), { timeout: 10_000 }).toBe("5");
    // Short waits end with 304, and the log says so.
    const same = one.page.getByLabel("Requests of Cleo’s phone").getByText("304").first();
    await same.waitFor();
    expectNoFaults(one);
    expectNoFaults(two);
    await two.page.close();
    // The window that is left waits long again.
    await one.page.getByLabel("Requests of Cleo’s phone").getByText("wait=30").first().waitFor();
    await one.context.close();
  });

  it("a server that crashes and comes back: the phones notice both by themselves", async () => {
    const opened = await openWindow(browser, `${server.console}#/try/801,802,803`);
    const { page } = opened;
    await allLive(page);
    await page.getByLabel("Bob’s phone").getByRole("button", { name: "Like", exact: true }).click();
    await expect.poll(() => unread(page, "Ann", "counters.like")).toBe("1");
    await server.kill();
    await expect.poll(() => page.locator(".state.retrying").count(), { timeout: 15_000 }).toBe(3);
    expect(await unread(page, "Ann", "counters.like"), "what is known stays").toBe("1");
    await server.start();
    await expect.poll(() => page.locator(".state.live").count(), { timeout: 30_000 }).toBe(3);
    await page.getByLabel("Bob’s phone").getByRole("button", { name: "Like", exact: true }).click();
    await expect.poll(() => unread(page, "Ann", "counters.like")).toBe("2");
    expectNoFaults(opened, FAILED_REQUEST);
    await opened.context.close();
  });

  it("a server that is stopped and started: what is tried meanwhile fails plainly, and then works", async () => {
    const opened = await openWindow(browser, `${server.console}#/try/811,812,813`);
    const { page } = opened;
    await allLive(page);
    const like = () => page.getByLabel("Bob’s phone").getByRole("button", { name: "Like", exact: true }).click();
    await server.stop();
    await like();
    await page.getByText("The server does not answer.").waitFor();
    await expect.poll(() => page.locator(".state.retrying").count()).toBe(3);
    await server.start();
    await page.getByText("The server does not answer.").waitFor({ state: "hidden", timeout: 30_000 });
    await like();
    await page.getByText("Bob likes Ann: her head").waitFor();
    await expect.poll(() => unread(page, "Ann", "counters.like"), { timeout: 30_000 }).toBe("1");
    expectNoFaults(opened, FAILED_REQUEST);
    await opened.context.close();
  });

  it("what does not answer is said until the next answer, even if nothing changed", async () => {
    const users = `${server.console}#/try/821,822,823`;
    const opened = await openWindow(browser, users);
    const { page } = opened;
    // With a second window polls end after a second, with 304.
    const other = await openTab(opened.context, users);
    await Promise.all([allLive(page), allLive(other.page)]);
    await page.getByLabel("Requests of Bob’s phone").getByText("304").first().waitFor();
    await page.route("**/v1/**", (route) => route.abort());
    await page.getByLabel("Bob’s phone").getByRole("button", { name: "Like", exact: true }).click();
    await page.getByText("The server does not answer.").waitFor();
    const said = page.locator(".guide .said");
    const refused = page.waitForResponse((response) => response.status() === 502);
    await page.route("**/v1/**", (route) => route.fulfill({ status: 502, body: "a proxy" }));
    await refused;
    expect(await said.innerText(), "a proxy is not the server").toBe("The server does not answer.");
    await page.unroute("**/v1/**");
    await expect.poll(() => said.innerText()).toBe("The server answers again. The last action may not have happened.");
    expect(await said.getAttribute("class")).toBe("said");
    expectNoFaults(opened, FAILED_REQUEST);
    await opened.context.close();
  });

  it("one request that fails among many that are answered", async () => {
    const users = `${server.console}#/try/831,832,833`;
    const opened = await openWindow(browser, users);
    const { page } = opened;
    const other = await openTab(opened.context, users);
    await Promise.all([allLive(page), allLive(other.page)]);
    await page.getByLabel("Requests of Bob’s phone").getByText("304").first().waitFor();
    await page.route("**/increment", (route) => route.abort());
    await page.getByLabel("Bob’s phone").getByRole("button", { name: "Like", exact: true }).click();
    await page.getByText("The server answers again.").waitFor();
    expectNoFaults(opened, FAILED_REQUEST);
    await opened.context.close();
  });
});
