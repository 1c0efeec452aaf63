// Keys, and what a stranger may try.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allLive, expectNoFaults, FAILED_REQUEST, openTab, openWindow, startBrowser } from "../support/browser.js";
import { SECRET, Server, TIERS } from "../support/server.js";

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

describe.each(TIERS)("access on the %s tier", (tier) => {
  let browser: Browser;
  let server: Server;
  beforeAll(async () => {
    server = await Server.start({ tier, isOpen: false });
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.remove();
  });

  it("the page is served with a strict policy, and the server says where it is", async () => {
    expect(server.welcome).toContain(`${server.baseUrl}/console\n`);
    const moved = await fetch(`${server.baseUrl}/console`, { redirect: "manual" });
    expect([moved.status, moved.headers.get("location")]).toEqual([303, "/console/"]);
    for (const file of ["", "console.js", "console.css"]) {
      const { status, headers } = await fetch(server.console + file);
      expect([status, headers.get("content-security-policy"), headers.get("cache-control")], file).toEqual([
        200,
        POLICY,
        "no-cache",
      ]);
    }
  });

  it.runIf(tier === "embedded")(
    "the page at /docs works under its own policy",
    async () => {
      const opened = await openWindow(browser, `${server.baseUrl}/docs/`);
      // A page of more than a hundred routes takes its time.
      await opened.page.locator(".opblock").first().waitFor({ timeout: 150_000 });
      expectNoFaults(opened);
      await opened.context.close();
    },
    180_000,
  );

  it("a wrong key, one with its name, the right one", async () => {
    const opened = await openWindow(browser, server.console);
    const { page, context } = opened;
    const input = page.getByLabel("Service key");
    const enter = async (key: string) => {
      await input.fill(key);
      await page.getByRole("button", { name: "Open the console" }).click();
    };
    await input.waitFor();
    expect(await page.getByRole("alert").count(), "nothing is wrong yet").toBe(0);
    await enter("a-wrong-key-of-16-and-more");
    await page.getByText("The server refused this key.").waitFor();
    await enter(`console:${SECRET}`);
    await page.getByText("type the part after the colon").waitFor();
    await enter("schlüssel-€");
    await page.getByText("cannot contain such characters").waitFor();
    await enter(SECRET);
    await page.getByText("This writes to the server").waitFor();
    const before = await server.backend.GET("/v1/events");
    await page.getByRole("button", { name: "Start the phones" }).click();
    await allLive(page);
    const after = await server.backend.GET("/v1/events");
    expect(after.data.items.length, "starting the phones changes nothing for others").toBe(before.data.items.length);
    const left = () => [localStorage.length, sessionStorage.length, document.cookie, location.href.includes("key")];
    expect(await page.evaluate(left)).toEqual([0, 0, "", false]);
    const other = await openTab(context, server.console);
    await other.page.getByLabel("Service key").waitFor();
    await page.getByRole("button", { name: "Forget it" }).click();
    await input.waitFor();
    await enter(SECRET);
    await page.getByText("This writes to the server").waitFor();
    await page.reload();
    await input.waitFor();
    expect(await input.inputValue()).toBe("");
    expectNoFaults(opened, FAILED_REQUEST);
    await context.close();
  });

  it("the token of a user is no service key", async () => {
    const opened = await openWindow(browser, server.console);
    await opened.page.route("**/v1/badges/query", (route) =>
      route.fulfill({
        status: 403,
        contentType: "application/problem+json",
        body: '{"code":"forbidden","title":"Forbidden","detail":"x","status":403}',
      }),
    );
    await opened.page.getByLabel("Service key").fill("the-token-of-a-user");
    await opened.page.keyboard.press("Enter");
    await opened.page.getByText("This is not a service key.").waitFor();
    expectNoFaults(opened, FAILED_REQUEST);
    await opened.context.close();
  });

  it("a key that is taken out of use asks for another one", async () => {
    const opened = await openWindow(browser, `${server.console}#/lookup/42`);
    const { page } = opened;
    await page.getByLabel("Service key").fill(SECRET);
    await page.keyboard.press("Enter");
    await page.getByText("The poll and the rows agree").waitFor();
    await server.stop();
    await server.start({ HEADMARK_SERVICE_KEYS: "next:another-key-of-16-and-more" });
    await page.getByRole("button", { name: "Look again" }).click();
    await page.getByText("The server refused this key.").waitFor();
    await page.getByLabel("Service key").fill("another-key-of-16-and-more");
    await page.keyboard.press("Enter");
    await page.getByText("The poll and the rows agree").waitFor();
    expectNoFaults(opened, FAILED_REQUEST);
    await opened.context.close();
    await server.stop();
    await server.start();
  });

  it("a server that is away at the start", async () => {
    const opened = await openWindow(browser, `${server.console}#/lookup`);
    const { page } = opened;
    await page.route("**/v1/**", (route) => route.abort("connectionrefused"));
    await page.reload();
    await page.getByText("The server is away").waitFor();
    await page.unroute("**/v1/**");
    await page.getByLabel("Service key").waitFor();
    expectNoFaults(opened, FAILED_REQUEST);
    await opened.context.close();
  });
});
