// The poller and the real server: whatever lies between them, the user sees what the server has.

import { describe, expect, test } from "vitest";
import type { Headmark } from "../src/client.js";
import type { UnreadPoller } from "../src/poller/poller.js";
import { Dice } from "../test/virtual-time.js";
import { TIERS } from "./stores.js";
import { eventually, expectMonotonic, truth, watch, world } from "./support.js";

const USER = "42";

/** A write of a backend, or a reset on one of the user's two devices. */
async function act(service: Headmark, poller: UnreadPoller, other: UnreadPoller, dice: Dice): Promise<void> {
  const kind = dice.upTo(8);
  const badge = dice.chance(0.7) ? "mention" : "like";
  if (kind < 3)
    await service.POST("/v1/users/{user}/badges/{badge}/increment", { params: { path: { user: USER, badge } }, body: { by: 1 } });
  else if (kind === 3)
    await service.POST("/v1/broadcasts/{channel}", { params: { path: { channel: "system" } }, body: { title: "News" } });
  else if (kind === 4) await service.POST("/v1/dots/{dot}/light", { params: { path: { dot: "mall" } } });
  else if (kind === 5) poller.reset("counters", badge);
  else if (kind === 6) poller.reset("broadcasts", "system");
  else other.reset("dots", "mall");
}

describe.each(TIERS)("on the %s tier", (tier) => {
  test.concurrent.for([1, 2, 3, 4])("writes and resets through a bad network, seed %i", async (seed, { onTestFinished }) => {
    const here = await world(tier, seed, onTestFinished);
    const { server, proxy } = here;
    const { poller, views } = watch(here, USER);
    const other = watch(here, USER);
    const dice = new Dice(seed);
    proxy.badness = 0.5;
    for (let step = 0; step < 120; step += 1) {
      await act(server.service, poller, other.poller, dice);
      await new Promise((resolve) => setTimeout(resolve, dice.upTo(60)));
    }
    proxy.badness = 0;
    await eventually(async () => {
      const summary = await truth(server, USER);
      expect(poller.view).toEqual({ status: "live", trouble: null, summary });
      expect(other.poller.view.summary).toEqual(summary);
    });
    expectMonotonic(views);
    expectMonotonic(other.views);
    expect(
      Object.entries(proxy.done).filter(([, count]) => count === 0),
      "every fault was met",
    ).toEqual([]);
  });

  test.concurrent("a server that hangs, and comes back", async ({ onTestFinished }) => {
    const here = await world(tier, 5, onTestFinished);
    const { server } = here;
    const { poller, views } = watch(here, USER);
    await eventually(() => expect(poller.view.status).toBe("live"));
    server.pause();
    await eventually(() => expect(poller.view.status).toBe("retrying"));
    expect(poller.view.summary?.total).toBe(0);
    server.resume();
    const params = { path: { user: USER, badge: "mention" } };
    await server.service.POST("/v1/users/{user}/badges/{badge}/increment", { params, body: { by: 3 } });
    await eventually(async () =>
      expect(poller.view).toEqual({ status: "live", trouble: null, summary: await truth(server, USER) }),
    );
    expect(poller.view.summary?.total).toBe(3);
    expectMonotonic(views);
  });

  test.concurrent("a server that is restored from a backup", async ({ onTestFinished }) => {
    const here = await world(tier, 6, onTestFinished);
    const { server, proxy } = here;
    const { poller, views } = watch(here, USER);
    const increment = (by: number) =>
      server.service.POST("/v1/users/{user}/badges/{badge}/increment", {
        params: { path: { user: USER, badge: "mention" } },
        body: { by },
      });
    await increment(2);
    await server.backUp();
    for (let count = 0; count < 10; count += 1) await increment(1);
    await eventually(() => expect(poller.view.summary?.total).toBe(12));
    const { epoch, revision } = poller.view.summary ?? {};
    await server.restore();
    proxy.badness = 0.3;
    await increment(1);
    await eventually(async () => expect(poller.view.summary).toEqual(await truth(server, USER)));
    expect(poller.view.summary?.total).toBe(3);
    expect(poller.view.summary?.epoch).not.toBe(epoch);
    expect(poller.view.summary?.revision).toBeLessThan(revision ?? 0);
    expectMonotonic(views);
  });

  test.concurrent("behind a proxy that drops tags, polls do not wait", async ({ onTestFinished }) => {
    const here = await world(tier, 8, onTestFinished);
    const { server, proxy } = here;
    proxy.dropsTags = true;
    const { poller, views } = watch(here, USER);
    const params = { path: { user: USER, badge: "mention" } };
    for (const total of [1, 2]) {
      await server.service.POST("/v1/users/{user}/badges/{badge}/increment", { params });
      await eventually(() => expect(poller.view.summary?.total).toBe(total));
    }
    // In a network without the proxy, they wait again.
    proxy.dropsTags = false;
    poller.refresh();
    await eventually(() => expect(server.waitingPolls()).resolves.toBe(1));
    expect(views.map(({ status }) => status)).not.toContain("failed");
  });

  test.concurrent("a poll that is held brings news at once, and an idle poller sends nothing", async ({ onTestFinished }) => {
    const here = await world(tier, 7, onTestFinished);
    const { server, proxy } = here;
    const { poller } = watch(here, USER, 20);
    await eventually(() => expect(poller.view.status).toBe("live"));
    await eventually(() => expect(server.waitingPolls()).resolves.toBe(1));
    const before = proxy.done.none;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(proxy.done.none).toBe(before);
    const params = { path: { user: USER, badge: "mention" } };
    await server.service.POST("/v1/users/{user}/badges/{badge}/increment", { params });
    await eventually(() => expect(poller.view.summary?.total).toBe(1));
  });
});
