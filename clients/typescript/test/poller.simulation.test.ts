// The poller against a model of the server, in virtual time: random writes, faults, pauses, resets and
// restores. Whatever happens, what is shown does not go back, and in the end it is what the server has.

import { expect, test } from "vitest";
import { initialPoller, stepPoller } from "../src/poller/step.js";
import type { PollerEffect, PollerEvent } from "../src/poller/types.js";
import type { UnreadSummary } from "../src/types.js";
import { Dice, VirtualTime } from "./virtual-time.js";

const WAIT_S = 30;

interface Rows {
  epoch: number;
  revision: number;
  shared: number;
  head: number;
  mark: number;
}

class Simulation {
  readonly dice: Dice;
  readonly time = new VirtualTime();
  rows: Rows = { epoch: 1, revision: 1, shared: 1, head: 0, mark: 0 };
  older: Rows[] = [];
  faults = true;
  state = initialPoller({ wait_s: WAIT_S, cap: null });
  running = new Map<number, () => void>();
  polls: number[] = [];
  inFlight = new Set<number>();
  shown: UnreadSummary | null = null;
  #held = new Map<number, { tag: string | null; answer: () => void }>();

  constructor(seed: number) {
    this.dice = new Dice(seed);
  }

  send(event: PollerEvent): void {
    const [state, effects] = stepPoller(this.state, event, Math.round(this.time.now));
    this.state = state;
    for (const effect of effects) this.perform(effect);
  }

  write(change: (rows: Rows) => Partial<Rows>): void {
    this.older.push(this.rows);
    this.rows = { ...this.rows, ...change(this.rows) };
    for (const [id, { tag, answer }] of [...this.#held]) {
      if (tag === this.tag(this.rows)) continue;
      this.#held.delete(id);
      answer();
    }
  }

  restore(): void {
    const back = this.older[this.dice.upTo(this.older.length)] ?? this.rows;
    const epoch = Math.max(...this.older.map((rows) => rows.epoch), this.rows.epoch) + 1;
    this.older = [];
    this.write(() => ({ ...back, epoch }));
    this.older = [];
  }

  tag(rows: Rows): string {
    return `${rows.epoch}.${rows.revision}.${rows.shared}`;
  }

  summary(rows: Rows): UnreadSummary {
    const unread = rows.head - rows.mark;
    return {
      user_id: "42",
      epoch: `e${rows.epoch}`,
      revision: rows.revision,
      shared_revision: rows.shared,
      degraded: false,
      total: unread + rows.shared,
      counters: { mention: { unread, head: rows.head } },
      broadcasts: { system: { unread: rows.shared, head: rows.shared } },
      chats: { unread: 0, mentions: 0, groups: 0, directs: 0 },
      notifications: {},
    };
  }

  perform(effect: PollerEffect): void {
    switch (effect.type) {
      case "poll":
        return this.poll(effect);
      case "send_reset":
        return this.reset(effect);
      case "sleep": {
        const wake = () => this.send({ type: "woke", id: effect.id });
        this.running.set(effect.id, this.time.after(effect.ms + this.dice.next() * effect.jitter_ms, wake));
        return;
      }
      case "cancel":
        this.inFlight.delete(effect.id);
        this.#held.delete(effect.id);
        this.running.get(effect.id)?.();
        return;
      case "show":
        return this.show(effect.view.summary);
      case "refused":
        throw new Error("nothing refuses a reset here");
    }
  }

  show(summary: UnreadSummary | null): void {
    if (this.shown && summary && this.shown.epoch === summary.epoch) {
      expect(summary.revision ?? 0).toBeGreaterThanOrEqual(this.shown.revision ?? 0);
      if (summary.revision === this.shown.revision) {
        expect(summary.shared_revision ?? 0).toBeGreaterThanOrEqual(this.shown.shared_revision ?? 0);
      }
    }
    this.shown = summary;
  }

  poll({ id, tag, wait_s }: Extract<PollerEffect, { type: "poll" }>): void {
    expect(this.inFlight.size, "one poll in flight").toBe(0);
    expect(this.time.now - (this.polls.at(-1) ?? -1_000), "the pace").toBeGreaterThanOrEqual(999);
    if (wait_s !== null) expect(tag).not.toBeNull();
    this.polls.push(this.time.now);
    this.inFlight.add(id);
    const end = (ms: number, make: () => PollerEvent) => {
      const cancel = this.time.after(ms, () => {
        this.inFlight.delete(id);
        this.send(make());
      });
      this.running.set(id, cancel);
    };
    const answer = (rows: Rows) => () => ({
      type: "answer" as const,
      id,
      status: 200,
      tag: this.tag(rows),
      body: this.summary(rows),
    });
    const delay = this.dice.upTo(300);
    if (this.faults && this.dice.chance(0.35)) return end(delay, this.fault(id));
    if (tag !== this.tag(this.rows)) return end(delay, answer(this.rows));
    const notModified = () => ({ type: "answer" as const, id, status: 304 });
    if (wait_s === null) return end(delay, notModified);
    end(wait_s * 1_000, notModified);
    this.#held.set(id, {
      tag,
      answer: () => {
        this.running.get(id)?.();
        end(delay, answer(this.rows));
      },
    });
  }

  fault(id: number): () => PollerEvent {
    const kind = this.dice.upTo(5);
    const rows = this.rows;
    if (kind === 0) return () => ({ type: "answer", id, status: 503, retry_after_s: 1 + this.dice.upTo(5) });
    if (kind === 1) return () => ({ type: "answer", id, status: 304 });
    if (kind === 2) return () => ({ type: "answer", id, status: 200, body: this.degraded(rows) });
    const late = this.older[this.dice.upTo(this.older.length)];
    if (kind === 3 && late) return () => ({ type: "answer", id, status: 200, tag: this.tag(late), body: this.summary(late) });
    return () => ({ type: "failed", id });
  }

  degraded(rows: Rows): UnreadSummary {
    const { user_id, epoch, revision, counters } = this.summary(rows);
    const known: UnreadSummary = { user_id, epoch, degraded: true, missing: ["broadcasts", "chats", "notifications"] };
    return this.dice.chance(0.5) ? known : { ...known, revision: revision ?? 0, counters: counters ?? {} };
  }

  reset({ id, up_to }: Extract<PollerEffect, { type: "send_reset" }>): void {
    const isLost = this.faults && this.dice.chance(0.3);
    const isDone = !isLost || this.dice.chance(0.5);
    const apply = () => {
      if (isDone) {
        this.write(({ head, mark, revision }) => {
          const moved = Math.max(mark, Math.min(up_to, head));
          return { mark: moved, revision: moved === mark ? revision : revision + 1 };
        });
      }
      const { head, mark, revision } = this.rows;
      const answer: PollerEvent = { type: "reset_answer", id, status: 200, body: { head, revision, unread: head - mark } };
      this.running.set(
        id,
        this.time.after(this.dice.upTo(500), () => this.send(isLost ? { type: "failed", id } : answer)),
      );
    };
    this.running.set(id, this.time.after(this.dice.upTo(500), apply));
  }

  /** Something that the world does. */
  act(): void {
    const signals = ["hidden", "visible", "visible", "offline", "online", "online", "refresh"] as const;
    const kind = this.dice.upTo(12);
    if (kind < 4) this.write(({ head, revision }) => ({ head: head + 1, revision: revision + 1 }));
    else if (kind < 6) this.write(({ shared }) => ({ shared: shared + 1 }));
    else if (kind < 8) this.send({ type: "reset", kind: "counters", name: "mention" });
    else if (kind < 11) this.send({ type: signals[this.dice.upTo(signals.length)] ?? "refresh" });
    else if (this.dice.chance(0.3)) this.restore();
  }
}

test.each(Array.from({ length: 300 }, (_, seed) => seed))("seed %i", (seed) => {
  const simulation = new Simulation(seed);
  simulation.send({ type: "start" });
  for (let step = 0; step < 150; step += 1) {
    simulation.time.runUntil(simulation.time.now + simulation.dice.upTo(2_500));
    simulation.act();
  }
  simulation.faults = false;
  simulation.send({ type: "visible" });
  simulation.send({ type: "online" });
  simulation.time.runUntil(simulation.time.now + 200_000);
  expect(simulation.state.resets).toEqual([]);
  expect(simulation.shown).toEqual(simulation.summary(simulation.rows));
  expect(simulation.state.view.status).toBe("live");

  const before = simulation.polls.length;
  simulation.time.runUntil(simulation.time.now + 300_000);
  expect(simulation.polls.length - before, "polls when nothing happens").toBeLessThanOrEqual(300 / WAIT_S + 1);
});
