// The inbox reader against a model of the server and of an app that stores rows and position in one
// transaction: random rows, faults, crashes, expiry and restores. Each row is stored once, in order.

import { expect, test } from "vitest";
import { initialInbox, stepInbox } from "../src/inbox/step.js";
import type { InboxEffect, InboxEvent, InboxPosition } from "../src/inbox/types.js";
import type { InboxItem, InboxPage } from "../src/types.js";
import { Dice, VirtualTime } from "./virtual-time.js";

const CONFIG = { wait_s: 30, limit: 5, cursor_gap_ms: 5_000 };

class Simulation {
  readonly dice: Dice;
  readonly time = new VirtualTime();
  epoch = 1;
  head = 0;
  earliest = 1;
  cursor = 0;
  /** What the app has in its database. */
  stored: { rows: string[]; position: InboxPosition | null } = { rows: [], position: null };
  faults = true;
  state = initialInbox(CONFIG, null);
  running = new Map<number, () => void>();
  held: { after: number; answer: () => void } | null = null;
  isFetching = false;
  /** Effects of a process that was killed lead nowhere. */
  life = 0;

  constructor(seed: number) {
    this.dice = new Dice(seed);
  }

  send(event: InboxEvent): void {
    const [state, effects] = stepInbox(this.state, event, Math.round(this.time.now));
    this.state = state;
    for (const effect of effects) this.perform(effect);
  }

  after(id: number, ms: number, run: () => void): void {
    const { life } = this;
    this.running.set(
      id,
      this.time.after(ms, () => (life === this.life ? run() : undefined)),
    );
  }

  row(seq: number): InboxItem {
    return { seq, sender_id: "7", content: `${this.epoch}:${seq}`, sent_at: "2026-01-31T09:30:00.000Z" };
  }

  perform(effect: InboxEffect): void {
    switch (effect.type) {
      case "fetch":
        return this.fetch(effect);
      case "deliver":
      case "reset":
        return this.after(effect.id, this.dice.upTo(50), () => this.store(effect));
      case "put_cursor":
        return this.after(effect.id, this.dice.upTo(300), () => this.putCursor(effect));
      case "sleep":
        return this.after(effect.id, effect.ms + this.dice.next() * effect.jitter_ms, () =>
          this.send({ type: "woke", id: effect.id }),
        );
      case "cancel":
        this.isFetching = false;
        this.held = null;
        this.running.get(effect.id)?.();
        return;
      case "gap":
      case "status":
        return;
    }
  }

  store(effect: Extract<InboxEffect, { type: "deliver" | "reset" }>): void {
    const { id } = effect;
    if (this.faults && this.dice.chance(0.2)) return this.send({ type: "not_delivered", id });
    if (effect.type === "reset") this.stored = { rows: [], position: null };
    else
      this.stored = { rows: [...this.stored.rows, ...effect.items.map((item) => item.content ?? "")], position: effect.position };
    // The process may die after the transaction, before it is confirmed.
    if (this.faults && this.dice.chance(0.05)) return this.crash();
    this.send({ type: "delivered", id });
  }

  putCursor({ id, seq }: Extract<InboxEffect, { type: "put_cursor" }>): void {
    if (this.faults && this.dice.chance(0.3)) return this.send({ type: "failed", id });
    this.cursor = Math.max(this.cursor, Math.min(seq, this.head));
    this.send({ type: "cursor_answer", id, status: 200 });
  }

  crash(): void {
    this.life += 1;
    this.isFetching = false;
    this.held = null;
    this.state = initialInbox(CONFIG, this.stored.position);
    this.send({ type: "start" });
  }

  fetch({ id, after, epoch, wait_s, limit }: Extract<InboxEffect, { type: "fetch" }>): void {
    expect(this.isFetching, "one request in flight").toBe(false);
    this.isFetching = true;
    const end = (ms: number, make: () => InboxEvent) =>
      this.after(id, ms, () => {
        this.isFetching = false;
        this.send(make());
      });
    if (this.faults && this.dice.chance(0.3)) {
      return end(this.dice.upTo(300), () =>
        this.dice.chance(0.5) ? { type: "failed", id } : { type: "answer", id, status: 429, retry_after_s: 1 },
      );
    }
    const answer = () => this.answer(id, after, epoch, limit);
    if (wait_s === null || after !== this.head || epoch !== `i${this.epoch}`) return end(this.dice.upTo(300), answer);
    end(wait_s * 1_000, answer);
    this.held = {
      after,
      answer: () => {
        this.running.get(id)?.();
        end(this.dice.upTo(300), answer);
      },
    };
  }

  answer(id: number, after: number | null, epoch: string | null, limit: number): InboxEvent {
    const refused = { type: "answer" as const, id, status: 410 };
    if ((epoch ?? `i${this.epoch}`) !== `i${this.epoch}`) return { ...refused, code: "inbox_reset" };
    if (after !== null && after + 1 < this.earliest) return { ...refused, code: "cursor_expired", earliest_seq: this.earliest };
    const first = Math.max((after ?? 0) + 1, this.earliest);
    const last = Math.min(first + limit - 1, this.head);
    const items = Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => this.row(first + index));
    const next_after = items.at(-1)?.seq ?? this.head;
    const body: InboxPage = { items, epoch: `i${this.epoch}`, head: this.head, next_after, has_more: next_after < this.head };
    return { type: "answer", id, status: 200, body };
  }

  append(count: number): void {
    this.head += count;
    const { held } = this;
    this.held = null;
    held?.answer();
  }

  act(canExpire: boolean): void {
    const signals = ["offline", "online", "online", "refresh", "stop", "start", "start"] as const;
    const kind = this.dice.upTo(10);
    if (kind < 5) this.append(1 + this.dice.upTo(8));
    else if (kind < 8) this.send({ type: signals[this.dice.upTo(signals.length)] ?? "start" });
    else if (kind === 8) this.crash();
    else if (this.dice.chance(0.3)) this.restore();
    else if (canExpire) this.earliest = Math.min(this.head + 1, this.earliest + this.dice.upTo(10));
  }

  restore(): void {
    this.epoch += 1;
    this.head = this.dice.upTo(this.head + 1);
    this.earliest = Math.min(this.earliest, this.head + 1);
    this.cursor = 0;
    this.held?.answer();
    this.held = null;
  }
}

function run(seed: number, canExpire: boolean): Simulation {
  const simulation = new Simulation(seed);
  simulation.send({ type: "start" });
  for (let step = 0; step < 120; step += 1) {
    simulation.time.runUntil(simulation.time.now + simulation.dice.upTo(2_500));
    simulation.act(canExpire);
  }
  simulation.faults = false;
  simulation.send({ type: "start" });
  simulation.send({ type: "online" });
  simulation.append(1);
  simulation.time.runUntil(simulation.time.now + 300_000);
  return simulation;
}

const seeds = Array.from({ length: 150 }, (_, seed) => seed);

test.each(seeds)("every row once, seed %i", (seed) => {
  const { stored, epoch, head, state, cursor } = run(seed, false);
  expect(stored.rows).toEqual(Array.from({ length: head }, (_, index) => `${epoch}:${index + 1}`));
  expect(stored.position).toEqual({ epoch: `i${epoch}`, after: head });
  expect(state.status).toBe("live");
  expect(cursor).toBe(head);
});

test.each(seeds)("after a stop the cursor is that of the last row, seed %i", (seed) => {
  const simulation = run(seed, false);
  const { time, dice } = simulation;
  for (let stop = 0; stop < 10; stop += 1) {
    simulation.append(dice.upTo(12));
    time.runUntil(time.now + dice.upTo(1_500));
    simulation.send({ type: "stop" });
    time.runUntil(time.now + 1_000);
    expect(simulation.cursor).toBe(simulation.stored.position?.after);
    simulation.send({ type: "start" });
  }
});

test.each(seeds)("with expiry: in order, none twice, and up to the head, seed %i", (seed) => {
  const { stored, epoch, head } = run(seed, true);
  const seqs = stored.rows.map((row) => Number(row.split(":")[1]));
  expect(stored.rows.every((row) => row.startsWith(`${epoch}:`))).toBe(true);
  expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
  expect(seqs.at(-1)).toBe(head);
});
