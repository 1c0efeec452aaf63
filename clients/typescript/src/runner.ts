// Runs a state machine: one event at a time, and its effects in order. What an effect starts has an
// id, by which it can be cancelled.

import type { Answer } from "./answer.js";
import { NoAnswerError, ProblemError, retryAfterOf } from "./errors.js";
import type { LoopEffect } from "./loop.js";
import type { Clock } from "./surroundings.js";

type Sleep = Extract<LoopEffect, { type: "sleep" }>;
type Cancel = Extract<LoopEffect, { type: "cancel" }>;

export interface Machine<State extends { running: boolean }, Event, Effect> {
  state: State;
  step(state: State, event: Event, now: number): [State, Effect[]];
  /** Performs an effect other than `sleep` and `cancel`. */
  perform(effect: Exclude<Effect, LoopEffect>): void;
  clock: Clock;
}

interface Running {
  cancel(): void;
  /** When it has ended, with the event that it ends with. A sleep has none. */
  done?: Promise<void>;
}

export class Runner<State extends { running: boolean }, Event extends { type: string }, Effect extends { type: string }> {
  readonly #machine: Machine<State, Event, Effect>;
  readonly #events: Event[] = [];
  readonly #running = new Map<number, Running>();
  #isStepping = false;
  /** The app's error that was reported since the last answer. */
  #reported: string | null = null;

  constructor(machine: Machine<State, Event, Effect>) {
    this.#machine = machine;
  }

  get state(): State {
    return this.#machine.state;
  }

  /** A callback may send the next event: it waits until the step is over. */
  send(event: Event): void {
    this.#events.push(event);
    if (this.#isStepping) return;
    this.#isStepping = true;
    try {
      for (let next = this.#events.shift(); next; next = this.#events.shift()) this.#step(next);
    } finally {
      this.#isStepping = false;
    }
  }

  /** Starts what can be aborted by its id, and sends the event that it ends with. */
  start(id: number, run: (signal: AbortSignal) => Promise<Event>): void {
    const controller = new AbortController();
    const done = run(controller.signal).then(
      (event) => this.#end(id, event),
      (error: unknown) => {
        // A cancelled request fails, as it should.
        if (!controller.signal.aborted) report(error);
      },
    );
    this.#running.set(id, { cancel: () => controller.abort(), done });
  }

  /**
   * When what a stop does not cancel has ended: the app's transaction, and the cursor after it. It looks at least twice: a
   * callback may stop the loop before its own transaction is among what is running. It does not wait for a new start.
   */
  async settled(): Promise<void> {
    do await Promise.all(this.#ending());
    while (!this.state.running && this.#ending().length > 0);
  }

  #ending(): Promise<void>[] {
    return [...this.#running.values()].flatMap(({ done }) => done ?? []);
  }

  /** Starts a request. Where the server refuses it, it ends with an event of the type `refused`. */
  request(id: number, refused: Event["type"], send: (signal: AbortSignal) => Promise<Event>): void {
    this.start(id, async (signal) => {
      try {
        const event = await send(signal);
        this.#reported = null;
        return event;
      } catch (error) {
        const refusal = refusalOf(error);
        if (refusal) this.#reported = null;
        else if (!(signal.aborted || error instanceof NoAnswerError)) this.#reportOnce(error);
        return { type: refusal ? refused : "failed", id, ...refusal } as unknown as Event;
      }
    });
  }

  /** A token function that fails does so at each attempt. Its error is reported again after an answer. */
  #reportOnce(error: unknown): void {
    const text = String(error);
    if (text !== this.#reported) report(error);
    this.#reported = text;
  }

  #step(event: Event): void {
    const machine = this.#machine;
    const [state, effects] = machine.step(machine.state, event, machine.clock.now());
    machine.state = state;
    for (const effect of effects) this.#perform(effect);
  }

  #perform(effect: Effect): void {
    if (effect.type === "sleep") this.#sleep(effect as unknown as Sleep);
    else if (effect.type === "cancel") this.#cancel((effect as unknown as Cancel).id);
    else this.#machine.perform(effect as Exclude<Effect, LoopEffect>);
  }

  #sleep({ id, ms, jitter_ms }: Sleep): void {
    const { clock } = this.#machine;
    const wake = () => this.#end(id, { type: "woke", id } as unknown as Event);
    this.#running.set(id, { cancel: clock.sleep(ms + clock.random() * jitter_ms, wake) });
  }

  #cancel(id: number): void {
    const running = this.#running.get(id);
    this.#running.delete(id);
    running?.cancel();
  }

  #end(id: number, event: Event): void {
    if (this.#running.delete(id)) this.send(event);
  }
}

/** Whether a body is of the route, and not the JSON of something else. */
export function looksLike(body: unknown, fields: Record<string, (value: unknown) => boolean>): boolean {
  if (typeof body !== "object" || body === null) return false;
  return Object.entries(fields).every(([name, isRight]) => isRight((body as Record<string, unknown>)[name]));
}

export const isString = (value: unknown) => typeof value === "string";
export const isBoolean = (value: unknown) => typeof value === "boolean";

/** What a machine sees of a success. */
export function answerOf(response: Response): Answer {
  const answer: Answer = { status: response.status };
  const pollIntervalS = Number(response.headers.get("x-poll-interval") ?? Number.NaN);
  if (pollIntervalS > 0) answer.poll_interval_s = pollIntervalS;
  const retryAfterS = retryAfterOf(response.headers);
  if (retryAfterS !== undefined) answer.retry_after_s = retryAfterS;
  return answer;
}

/** What a machine sees of an error; null: no answer came. */
function refusalOf(error: unknown): (Answer & { earliest_seq?: number }) | null {
  if (!(error instanceof ProblemError)) return null;
  const answer: Answer & { earliest_seq?: number } = { status: error.status };
  if (error.code !== null) answer.code = error.code;
  if (error.retryAfterS !== undefined) answer.retry_after_s = error.retryAfterS;
  const earliestSeq = error.problem?.earliest_seq;
  if (earliestSeq !== undefined && Number.isInteger(earliestSeq)) answer.earliest_seq = earliestSeq;
  return answer;
}

/**
 * A function of the app threw, and the loop goes on. The error handler of the page hears of it. Elsewhere
 * it is logged: Node has no `reportError`, and that of Deno and Bun ends the process.
 */
export function report(error: unknown): void {
  if (typeof document === "object" && typeof reportError === "function") reportError(error);
  // biome-ignore lint/suspicious/noConsole: what an app must know and nobody catches goes there.
  else console.error(error);
}

export function callSafely(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    report(error);
  }
}
