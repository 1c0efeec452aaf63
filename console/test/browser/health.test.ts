// Health, in a real browser against the real server.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectNoFaults, FAILED_REQUEST, openWindow, picture, startBrowser } from "../support/browser.js";
import { Server, TIERS } from "../support/server.js";

const isPictured = process.env.SCREENSHOTS === "1";

/** What the legend of a chart says now. */
async function now(page: Page, chart: string): Promise<string[]> {
  return await page.locator(`[data-chart="${chart}"] dd`).allInnerTexts();
}

async function tile(page: Page, name: string): Promise<string> {
  return await page
    .locator(".tile")
    .filter({ has: page.locator("dt", { hasText: name }) })
    .locator("dd")
    .innerText();
}

describe.each(TIERS)("Health on the %s tier", (tier) => {
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

  /** Polls and writes, until it is stopped. */
  function traffic(): () => Promise<void> {
    let isOn = true;
    const work = async (user: string) => {
      for (let at = 0; isOn; at += 1) {
        const params = { path: { user, badge: "like" } };
        await server.backend.POST("/v1/users/{user}/badges/{badge}/increment", { params });
        for (let poll = 0; poll < 3; poll += 1)
          await server.backend.GET("/v1/users/{user}/badges", { params: { path: { user } } });
        await new Promise((resolve) => setTimeout(resolve, 30 + 25 * Math.sin(at / 12)));
      }
    };
    const workers = Promise.all(["1", "2", "3", "4"].map(work));
    return async () => {
      isOn = false;
      await workers;
    };
  }

  it("stores and charts follow what the node does", async () => {
    const opened = await openWindow(browser, `${server.console}#/health`);
    const { page } = opened;
    await expect.poll(() => tile(page, "Ready")).toBe("● yes");
    expect([
      await tile(page, "Database"),
      await tile(page, "Cache"),
      await tile(page, "Node"),
      await tile(page, "Drift"),
    ]).toEqual(["● ok", "● ok", "● ok", "● 0"]);
    const stop = traffic();
    const perSecond = async (series: number) => Number((await now(page, "requests"))[series]?.replace("/s", ""));
    await expect.poll(() => perSecond(0), { timeout: 15_000 }).toBeGreaterThan(5);
    await expect.poll(() => perSecond(2), { timeout: 15_000 }).toBeGreaterThan(1);
    expect((await now(page, "commits"))[0]).toMatch(/^[\d.]+ ms$/);
    expect(Number((await now(page, "batch"))[0])).toBeGreaterThanOrEqual(1);
    expect((await now(page, "latency"))[1]).toMatch(/ m?s$/);
    await expect.poll(() => now(page, "hits").then(([hits]) => hits)).toMatch(/ %$/);
    const table = page.getByLabel("Table: Busiest routes of the last minute");
    await table.getByText("/v1/users/{user}/badges/{badge}/increment").waitFor();
    const line = page.locator('[data-chart="requests"] path.line.s0');
    await expect.poll(() => line.getAttribute("d"), { timeout: 10_000 }).toMatch(/M.*L/);
    if (tier === "embedded") {
      if (isPictured) await page.waitForTimeout(45_000);
      await picture(page, "health", 870);
    }
    // Behind the newest point, the legend shows the point under the pointer.
    const box = await page.locator('[data-chart="requests"] svg').boundingBox();
    if (box) await page.mouse.move(box.x + box.width * 0.9, box.y + 20);
    await page.getByText(/^\d+ s ago$/).waitFor();
    await stop();
    expectNoFaults(opened);
    await opened.context.close();
  }, 120_000);

  it("a node that goes away and is started again", async () => {
    const opened = await openWindow(browser, `${server.console}#/health`);
    const { page } = opened;
    const params = { path: { user: "9", badge: "like" } };
    for (let at = 0; at < 5; at += 1) await server.backend.POST("/v1/users/{user}/badges/{badge}/increment", { params });
    await expect.poll(() => now(page, "held").then(([held]) => held)).toBe("0");
    await server.stop();
    await page.getByText("The server does not answer.").first().waitFor();
    await server.start();
    await page.getByText("The counters fell once").waitFor();
    await expect.poll(() => tile(page, "Ready"), { timeout: 10_000 }).toBe("● yes");
    expect(await page.getByRole("alert").count()).toBe(0);
    expectNoFaults(opened, FAILED_REQUEST);
    await opened.context.close();
  });

  it("a node that hangs: the tiles say so in seconds, and once", async () => {
    const opened = await openWindow(browser, `${server.console}#/health`);
    const { page } = opened;
    await expect.poll(() => tile(page, "Ready")).toBe("● yes");
    server.hang();
    try {
      await expect.poll(() => tile(page, "Ready"), { timeout: 8_000 }).toBe("▲ does not answer");
      expect(await page.locator(".tile.good").count()).toBe(0);
      expect(await Promise.all(["Database", "Cache", "Node"].map((name) => tile(page, name)))).toEqual([
        "? unknown",
        "? unknown",
        "? unknown",
      ]);
      expect(await page.getByText("The server does not answer.").count()).toBe(1);
    } finally {
      server.wake();
    }
    await expect.poll(() => tile(page, "Ready"), { timeout: 10_000 }).toBe("● yes");
    expect(await page.getByRole("alert").count()).toBe(0);
    expectNoFaults(opened, FAILED_REQUEST);
    await opened.context.close();
  });

  it("metrics that are refused, and stores that are away, are said plainly", async () => {
    const opened = await openWindow(browser, `${server.console}#/health`);
    const { page } = opened;
    await expect.poll(() => tile(page, "Ready")).toBe("● yes");
    for (const [status, text] of [
      [401, "/metrics is refused (401): it needs a service key"],
      [404, "/metrics is not served here (404)"],
    ] as const) {
      await page.route("**/metrics", (route) => route.fulfill({ status, body: "" }));
      await page.getByText(text).waitFor();
      await page.unroute("**/metrics");
    }
    const body = { ready: true, degraded: true, database: "away", cache: "bypassed", node: "ok" };
    await page.route("**/readyz", (route) => route.fulfill({ status: 200, json: body }));
    await expect.poll(() => tile(page, "Database")).toBe("▲ does not answer");
    expect([await tile(page, "Ready"), await tile(page, "Cache")]).toEqual([
      "▲ yes, degraded",
      "▲ bypassed: polls read the database",
    ]);
    expectNoFaults(opened, FAILED_REQUEST);
    await opened.context.close();
  });
});
