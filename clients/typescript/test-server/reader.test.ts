// The inbox reader and the real server: every row once, in order, whatever happens in between.

import { describe, expect, test } from "vitest";
import { InboxReader } from "../src/inbox/reader.js";
import type { InboxPosition } from "../src/inbox/types.js";
import type { InboxItem } from "../src/types.js";
import { Dice } from "../test/virtual-time.js";
import type { Server } from "./server.js";
import { TIERS } from "./stores.js";
import { eventually, fastClock, type World, world } from "./support.js";

const USER = "42";

/** A phone: what its database has survives the app. */
class Phone {
  rows: InboxItem[] = [];
  position: InboxPosition | null = null;
  resets = 0;
  readonly #world: World;
  readonly #dice: Dice;
  #reader: InboxReader | null = null;

  constructor(here: World, seed: number) {
    this.#world = here;
    this.#dice = new Dice(seed);
    here.atEnd(() => this.kill());
  }

  launch(): void {
    this.kill();
    const reader: InboxReader = new InboxReader({
      headmark: this.#world.client(USER),
      device: "phone",
      position: this.position,
      limit: 7,
      waitS: 1,
      timeoutMs: 1_000,
      cursorGapMs: 1_000,
      clock: fastClock,
      onItems: (items, position) =>
        this.#transaction(reader, () => Object.assign(this, { rows: [...this.rows, ...items], position })),
      onReset: () => this.#transaction(reader, () => Object.assign(this, { rows: [], position: null, resets: this.resets + 1 })),
    });
    this.#reader = reader;
    reader.start();
  }

  /** The system ends the app: what it was doing has no effect any more. */
  kill(): void {
    void this.#reader?.stop();
    this.#reader = null;
  }

  async #transaction(reader: InboxReader, commit: () => void): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, this.#dice.upTo(10)));
    // A killed app commits nothing, and confirms nothing.
    if (reader !== this.#reader) return new Promise(() => {});
    commit();
  }
}

async function sendMessages(server: Server, count: number, prefix: string): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const body = { sender_id: "7", client_id: `${prefix}-${index}`, content: `${prefix} ${index}` };
    await server.service.POST("/v1/users/{user}/inbox", { params: { path: { user: USER } }, body });
  }
}

async function allRows(server: Server): Promise<InboxItem[]> {
  const rows: InboxItem[] = [];
  for (let after = 0; ; ) {
    const { data } = await server.service.GET("/v1/users/{user}/inbox", {
      params: { path: { user: USER }, query: { after, limit: 100 } },
    });
    rows.push(...data.items);
    after = data.next_after;
    if (!data.has_more) return rows;
  }
}

async function cursor(server: Server): Promise<number | undefined> {
  const { data } = await server.service.GET("/v1/users/{user}/devices", { params: { path: { user: USER } } });
  return data.items.find((device) => device.device_id === "phone")?.cursor;
}

describe.each(TIERS)("on the %s tier", (tier) => {
  test.concurrent.for([11, 12, 13])(
    "messages through a bad network to an app that is killed, seed %i",
    async (seed, { onTestFinished }) => {
      const here = await world(tier, seed, onTestFinished);
      const { server, proxy } = here;
      const phone = new Phone(here, seed);
      const dice = new Dice(seed);
      proxy.badness = 0.4;
      phone.launch();
      for (let step = 0; step < 20; step += 1) {
        await sendMessages(server, dice.upTo(12), `${step}`);
        if (dice.chance(0.3)) phone.launch();
        await new Promise((resolve) => setTimeout(resolve, dice.upTo(150)));
      }
      proxy.badness = 0;
      const rows = await allRows(server);
      expect(rows.length).toBeGreaterThan(50);
      await eventually(() => expect(phone.rows.length).toBe(rows.length));
      expect(phone.rows).toEqual(rows);
      expect(phone.resets).toBe(0);
      await eventually(async () => expect(await cursor(server)).toBe(rows.length));
    },
  );

  test.concurrent("a server that is restored from a backup, and one that hangs", async ({ onTestFinished }) => {
    const here = await world(tier, 14, onTestFinished);
    const { server, proxy } = here;
    const phone = new Phone(here, 14);
    phone.launch();
    await sendMessages(server, 20, "kept");
    await server.backUp();
    await sendMessages(server, 20, "lost");
    await eventually(() => expect(phone.rows.length).toBe(40));
    await server.restore();
    proxy.badness = 0.3;
    // As many rows as were lost: only the epoch tells that these are others.
    await sendMessages(server, 25, "new");
    const rows = await allRows(server);
    await eventually(() => expect(phone.rows).toEqual(rows));
    expect(phone.rows.at(20)?.content).toBe("new 0");
    expect(phone.resets).toBe(1);

    server.pause();
    // Longer than the reader waits for an answer.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    server.resume();
    await sendMessages(server, 5, "later");
    await eventually(async () => expect(phone.rows).toEqual(await allRows(server)));
  });
});
