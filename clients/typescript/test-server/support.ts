// What the tests against the real server share.

import { expect, type TestContext, vi } from "vitest";
import { createHeadmark, type Headmark } from "../src/client.js";
import { UnreadPoller } from "../src/poller/poller.js";
import type { UnreadView } from "../src/poller/types.js";
import type { Clock } from "../src/surroundings.js";
import type { UnreadSummary } from "../src/types.js";
import { FaultyProxy } from "./proxy.js";
import { Server, userToken } from "./server.js";
import type { Tier } from "./stores.js";

const SPEED = 10;

/** Pauses take a tenth of their time, so that backoff does not make the tests slow. */
export const fastClock: Clock = {
  now: () => Math.round(performance.now() * SPEED),
  random: Math.random,
  sleep: (ms, wake) => {
    const timer = setTimeout(wake, ms / SPEED);
    return () => clearTimeout(timer);
  },
};

type AtEnd = TestContext["onTestFinished"];

export interface World {
  server: Server;
  proxy: FaultyProxy;
  /** A client of a user, through the proxy. */
  client(user: string): Headmark;
  atEnd: AtEnd;
}

export async function world(tier: Tier, seed: number, atEnd: AtEnd): Promise<World> {
  const server = await Server.start(tier);
  const proxy = await FaultyProxy.start(seed, () => server.baseUrl);
  atEnd(async () => {
    proxy.stop();
    await server.remove();
  });
  const client = (user: string) => {
    // The first token has expired, as after a night: the client gets another.
    let token = userToken(user, -3_600);
    const renew = (isRejected: boolean) => {
      if (isRejected) token = userToken(user, 3_600);
      return token;
    };
    return createHeadmark({ baseUrl: proxy.baseUrl, token: renew });
  };
  return { server, proxy, client, atEnd };
}

/** A poller of a user through the proxy, and every view that it showed. */
export function watch({ client, atEnd }: World, user: string, waitS = 1): { poller: UnreadPoller; views: UnreadView[] } {
  const poller = new UnreadPoller({ headmark: client(user), waitS, timeoutMs: 1_000, clock: fastClock });
  const views: UnreadView[] = [];
  atEnd(poller.subscribe((view) => views.push(view)));
  return { poller, views };
}

/** What the server has, read past the proxy. */
export async function truth(server: Server, user: string): Promise<UnreadSummary> {
  return (await server.service.GET("/v1/users/{user}/badges", { params: { path: { user } } })).data;
}

export async function eventually(check: () => Promise<void> | void): Promise<void> {
  // The pauses between repeats over a bad line are real.
  await vi.waitFor(check, { timeout: 25_000, interval: 20 });
}

/** Within an epoch, nothing that was shown is older than what was shown before. */
export function expectMonotonic(views: UnreadView[]): void {
  const shown = views.flatMap(({ summary }) => (summary ? [summary] : []));
  for (const [index, summary] of shown.entries()) {
    const before = shown[index - 1];
    if (before?.epoch !== summary.epoch) continue;
    expect(summary.revision ?? 0).toBeGreaterThanOrEqual(before.revision ?? 0);
    expect(summary.counters?.mention?.head ?? 0).toBeGreaterThanOrEqual(before.counters?.mention?.head ?? 0);
    expect(summary.broadcasts?.system?.head ?? 0).toBeGreaterThanOrEqual(before.broadcasts?.system?.head ?? 0);
  }
}
