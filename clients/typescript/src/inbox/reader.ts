// The inbox reader's runtime: it performs what the state machine decides.

import type { Trouble } from "../answer.js";
import { type Headmark, signalsFor } from "../client.js";
import type { LoopEffect } from "../loop.js";
import { answerOf, callSafely, isBoolean, isString, looksLike, Runner, report } from "../runner.js";
import { type Clock, onlineSignals, type Signals, systemClock } from "../surroundings.js";
import type { InboxItem, InboxPage } from "../types.js";
import { initialInbox, stepInbox } from "./step.js";
import type { InboxEffect, InboxEvent, InboxPosition, InboxState, InboxStatus } from "./types.js";

export interface InboxReaderOptions {
  headmark: Headmark;
  /** By default `me`, the user of the token. */
  user?: string;
  /** The id of this device; its cursor keeps rows on the server until they are fetched. */
  device?: string;
  /** What the app stored with its last items; null on a new device. */
  position: InboxPosition | null;
  /**
   * Stores the items and the position in one transaction. The next items come when it resolves. When
   * it rejects, the same items come again. After `onGap` there are no items, but a position.
   */
  onItems: (items: InboxItem[], position: InboxPosition) => Promise<void> | void;
  /**
   * The server was restored, or its database failed over. Drop the position, and keep the items.
   * Everything that the server still keeps comes again, with the number that it had. What it has
   * removed or lost is with the app alone, and its numbers may go to other items.
   */
  onReset: () => Promise<void> | void;
  /** Items after `after` and before `earliestSeq` expired before this device fetched them. */
  onGap?: (gap: { after: number; earliestSeq: number }) => void;
  onStatus?: (status: InboxStatus, trouble: Trouble | null) => void;
  /** How long the server may hold a request, in seconds; by default 30. */
  waitS?: number;
  /** How long an answer may take beyond `waitS`; by default 10,000. */
  timeoutMs?: number;
  /** Items in a page, 1 to 100; by default 100. */
  limit?: number;
  /** The least time between two updates of the device's cursor; by default 5,000. */
  cursorGapMs?: number;
  /** Pauses when offline, unless the server is on this machine. With other signals it also pauses when hidden. */
  signals?: Signals;
  clock?: Clock;
}

type Fetch = Extract<InboxEffect, { type: "fetch" }>;
type PutCursor = Extract<InboxEffect, { type: "put_cursor" }>;
type Deliver = Extract<InboxEffect, { type: "deliver" | "reset" }>;
type Answered = Extract<InboxEvent, { type: "answer" }>;

/** Hands every item of a user's inbox to the app, once and in order. */
export class InboxReader {
  readonly #options: InboxReaderOptions;
  readonly #runner: Runner<InboxState, InboxEvent, InboxEffect>;
  #unwatch: (() => void) | null = null;

  constructor(options: InboxReaderOptions) {
    this.#options = options;
    const { waitS = 30, limit = 100, cursorGapMs = 5_000, device, position } = options;
    this.#runner = new Runner<InboxState, InboxEvent, InboxEffect>({
      state: initialInbox({ wait_s: waitS, limit, cursor_gap_ms: device === undefined ? null : cursorGapMs }, position),
      step: stepInbox,
      perform: (effect) => this.#perform(effect),
      clock: options.clock ?? systemClock,
    });
  }

  get status(): InboxStatus {
    return this.#runner.state.status;
  }

  start(): void {
    const { headmark, signals = onlineSignals } = this.#options;
    this.#unwatch ??= signalsFor(headmark, signals)((signal) => this.#runner.send({ type: signal }));
    this.#runner.send({ type: "start" });
  }

  /**
   * No more items come. The promise is for the end of what is on its way: `onItems` has stored its items, and the
   * cursor is put. So do not await it in a callback of the reader.
   */
  stop(): Promise<void> {
    this.#unwatch?.();
    this.#unwatch = null;
    this.#runner.send({ type: "stop" });
    return this.#runner.settled();
  }

  /** Asks now: the user wants it, or signed in again. */
  refresh(): void {
    this.#runner.send({ type: "refresh" });
  }

  #perform(effect: Exclude<InboxEffect, LoopEffect>): void {
    const { onGap, onStatus } = this.#options;
    switch (effect.type) {
      case "fetch":
        return this.#runner.request(effect.id, "answer", (signal) => this.#fetch(effect, signal));
      case "put_cursor":
        return this.#runner.request(effect.id, "cursor_answer", (signal) => this.#putCursor(effect, signal));
      case "deliver":
      case "reset":
        return this.#runner.start(effect.id, () => this.#deliver(effect));
      case "gap":
        return callSafely(() => onGap?.({ after: effect.after, earliestSeq: effect.earliest_seq }));
      case "status":
        return callSafely(() => onStatus?.(effect.status, effect.trouble));
    }
  }

  async #deliver(effect: Deliver): Promise<InboxEvent> {
    const { onItems, onReset } = this.#options;
    try {
      // Copies: the app may change them, and the same items may have to come again.
      if (effect.type === "reset") await onReset();
      else
        await onItems(
          effect.items.map((item) => ({ ...item })),
          { ...effect.position },
        );
      return { type: "delivered", id: effect.id };
    } catch (error) {
      report(error);
      return { type: "not_delivered", id: effect.id };
    }
  }

  async #fetch({ id, after, epoch, wait_s, limit }: Fetch, signal: AbortSignal): Promise<Answered> {
    const { headmark, user = "me", timeoutMs = 10_000 } = this.#options;
    const position = after !== null && epoch !== null ? { after, epoch } : {};
    const { data, response } = await headmark.GET("/v1/users/{user}/inbox", {
      params: { path: { user }, query: { limit, ...position, ...(wait_s !== null && { wait: wait_s }) } },
      signal,
      retries: 0,
      timeoutMs,
    });
    const event: Answered = { type: "answer", id, ...answerOf(response) };
    if (data && isPage(data)) event.body = data;
    return event;
  }

  async #putCursor({ id, seq }: PutCursor, signal: AbortSignal): Promise<InboxEvent> {
    const { headmark, user = "me", device = "", timeoutMs = 10_000 } = this.#options;
    const { response } = await headmark.PUT("/v1/users/{user}/devices/{device_id}/cursor", {
      params: { path: { user, device_id: device } },
      body: { seq },
      signal,
      retries: 0,
      timeoutMs,
    });
    return { type: "cursor_answer", id, ...answerOf(response) };
  }
}

function isPage(data: InboxPage): boolean {
  const { isInteger } = Number;
  const fields = { items: Array.isArray, epoch: isString, next_after: isInteger, has_more: isBoolean };
  return looksLike(data, fields) && data.items.every((item) => looksLike(item, { seq: isInteger }));
}
