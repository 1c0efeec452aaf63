// The poller's runtime: it performs what the state machine decides.

import { type Headmark, signalsFor } from "../client.js";
import type { LoopEffect } from "../loop.js";
import { answerOf, callSafely, isBoolean, isString, looksLike, Runner } from "../runner.js";
import { type Clock, pageSignals, type Signals, systemClock } from "../surroundings.js";
import { initialPoller, stepPoller } from "./step.js";
import type { PollerEffect, PollerEvent, PollerState, ResetKind, UnreadView } from "./types.js";

export interface UnreadPollerOptions {
  headmark: Headmark;
  /** By default `me`, the user of the token. */
  user?: string;
  /** As in the route: which kinds, a bound on the counts, which views. */
  query?: { include?: string; cap?: number; views?: string };
  /** How long the server may hold a poll, in seconds; by default 30. 0: it polls at the server's pace. */
  waitS?: number;
  /** How long an answer may take beyond `waitS`; by default 10,000. */
  timeoutMs?: number;
  /** Pauses when hidden, or offline unless the server is on this machine; by default the signals of the page. */
  signals?: Signals;
  clock?: Clock;
  /** The server refused a reset, and the number is back. */
  onResetRefused?: (refused: Extract<PollerEffect, { type: "refused" }>) => void;
}

type Poll = Extract<PollerEffect, { type: "poll" }>;
type SendReset = Extract<PollerEffect, { type: "send_reset" }>;
type Answered = Extract<PollerEvent, { type: "answer" }>;
type ResetAnswered = Extract<PollerEvent, { type: "reset_answer" }>;

/** Keeps a user's unread summary up to date, for as long as somebody subscribes to it. */
export class UnreadPoller {
  readonly #options: UnreadPollerOptions;
  readonly #runner: Runner<PollerState, PollerEvent, PollerEffect>;
  readonly #listeners = new Set<(view: UnreadView) => void>();
  #unwatch: (() => void) | null = null;

  constructor(options: UnreadPollerOptions) {
    this.#options = options;
    this.#runner = new Runner<PollerState, PollerEvent, PollerEffect>({
      state: initialPoller({ wait_s: options.waitS ?? 30, cap: options.query?.cap ?? null }),
      step: stepPoller,
      perform: (effect) => this.#perform(effect),
      clock: options.clock ?? systemClock,
    });
  }

  /** What to show now. The same object until it changes. */
  get view(): UnreadView {
    return this.#runner.state.view;
  }

  /** Polls as long as there are listeners. The result ends the subscription. */
  subscribe(listener: (view: UnreadView) => void): () => void {
    // A function of its own, so that one listener may subscribe twice.
    const entry = (view: UnreadView) => listener(view);
    this.#listeners.add(entry);
    this.#start();
    return () => {
      this.#listeners.delete(entry);
      // Components that take over from each other do so within one task: the request goes on.
      queueMicrotask(() => this.#stop());
    };
  }

  /**
   * Shows the badge as read at once, and says so to the server. Without `upTo`: up to what is shown.
   * Before the first answer nothing is shown. A reset with `upTo` waits for it; another one does nothing.
   */
  reset(kind: ResetKind, name: string, upTo?: number): void {
    this.#runner.send(upTo === undefined ? { type: "reset", kind, name } : { type: "reset", kind, name, up_to: upTo });
  }

  /** Polls now: after a write of one's own, after signing in again, or because the user asks for it. */
  refresh(): void {
    this.#runner.send({ type: "refresh" });
  }

  #start(): void {
    if (this.#unwatch) return;
    const { headmark, signals = pageSignals } = this.#options;
    this.#unwatch = signalsFor(headmark, signals)((signal) => this.#runner.send({ type: signal }));
    this.#runner.send({ type: "start" });
  }

  #stop(): void {
    if (this.#listeners.size > 0 || !this.#unwatch) return;
    this.#unwatch();
    this.#unwatch = null;
    this.#runner.send({ type: "stop" });
  }

  #perform(effect: Exclude<PollerEffect, LoopEffect>): void {
    switch (effect.type) {
      case "poll":
        return this.#runner.request(effect.id, "answer", (signal) => this.#poll(effect, signal));
      case "send_reset":
        return this.#runner.request(effect.id, "reset_answer", (signal) => this.#sendReset(effect, signal));
      case "show":
        for (const listener of [...this.#listeners]) callSafely(() => listener(effect.view));
        return;
      case "refused":
        return callSafely(() => this.#options.onResetRefused?.(effect));
    }
  }

  async #poll({ id, wait_s, tag }: Poll, signal: AbortSignal): Promise<Answered> {
    const { headmark, user = "me", query = {}, timeoutMs = 10_000 } = this.#options;
    const { data, response } = await headmark.GET("/v1/users/{user}/badges", {
      params: {
        path: { user },
        query: wait_s === null ? query : { ...query, wait: wait_s },
      },
      tag,
      signal,
      retries: 0,
      timeoutMs,
    });
    const event: Answered = { type: "answer", id, ...answerOf(response) };
    const etag = response.headers.get("etag");
    if (etag !== null) event.tag = etag;
    if (data && looksLike(data, { epoch: isString, degraded: isBoolean })) event.body = data;
    return event;
  }

  async #sendReset({ id, kind, name, up_to }: SendReset, signal: AbortSignal): Promise<ResetAnswered> {
    const { headmark, user = "me", timeoutMs = 10_000 } = this.#options;
    // A click that leaves the page must not lose it.
    const init = { body: { up_to }, signal, retries: 0, timeoutMs, keepalive: true };
    const send = {
      counters: () =>
        headmark.POST("/v1/users/{user}/badges/{badge}/reset", { params: { path: { user, badge: name } }, ...init }),
      broadcasts: () =>
        headmark.POST("/v1/users/{user}/broadcasts/{channel}/read", { params: { path: { user, channel: name } }, ...init }),
      dots: () => headmark.POST("/v1/users/{user}/dots/{dot}/clear", { params: { path: { user, dot: name } }, ...init }),
    };
    const { data, response } = await send[kind]();
    const event: ResetAnswered = { type: "reset_answer", id, ...answerOf(response) };
    if (data && looksLike(data, { head: Number.isInteger, revision: Number.isInteger })) event.body = data;
    return event;
  }
}
