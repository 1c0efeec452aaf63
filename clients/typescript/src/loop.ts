// What the two state machines share: when the loop runs, how it sleeps, and what it does after an
// answer that brought nothing.

import { type Answer, type Trouble, troubleOf } from "./answer.js";
import { isRetryable, jitterOf, pauseOf, retryAfterMs } from "./pace.js";

/** What the loop waits for. */
export type LoopTask =
  | { type: "request"; id: number; started_at: number; wait_s: number | null }
  | { type: "sleep"; id: number }
  /** The app's own transaction, which cannot be called back. */
  | { type: "delivery"; id: number };

export interface LoopState {
  next_id: number;
  running: boolean;
  hidden: boolean;
  offline: boolean;
  /** The app has to act (sign in again) before requests make sense. */
  failed: boolean;
  trouble: Trouble | null;
  task: LoopTask | null;
  /** No request is sent before this time. */
  not_before: number;
  interval_ms: number;
  /** Requests in a row that brought nothing. */
  failures: number;
  /** Of these, the requests that waited: only the answer to such a one ends their row. */
  failed_waits: number;
  /** The next request does not wait: what is known may be old, and the user is to hear so soon. */
  asks_at_once: boolean;
}

/** What the app, the user and the system tell a machine. */
export type Command = "start" | "stop" | "refresh" | "hidden" | "visible" | "offline" | "online";

export type LoopEffect =
  /** Send `woke` after `ms` and a random part of `jitter_ms`. */
  | { type: "sleep"; id: number; ms: number; jitter_ms: number }
  /** Abort the request or the sleep. */
  | { type: "cancel"; id: number };

/** A step in the making: a copy of the state to change, and the effects so far. */
export interface LoopDraft {
  state: LoopState;
  effects: { push(effect: LoopEffect): unknown };
  now: number;
}

/** Who has an id can be cancelled, and its late answer can be told from others. */
export function nextId(draft: LoopDraft): number {
  const id = draft.state.next_id;
  draft.state.next_id += 1;
  return id;
}

/** Obeys a command; `true`: the loop has to go on now. */
export function command(draft: LoopDraft, type: Command): boolean {
  const { state } = draft;
  switch (type) {
    case "start":
      if (state.running && !state.failed) return false;
      state.running = true;
      return resume(state);
    case "refresh":
      if (!state.running) return false;
      cancelTask(draft);
      return resume(state);
    case "stop":
      state.running = false;
      cancelTask(draft);
      return false;
    case "hidden":
    case "offline":
      state[type] = true;
      cancelTask(draft);
      return false;
    case "visible":
      return comeBack(state, "hidden");
    case "online":
      return comeBack(state, "offline");
  }
}

/** As if nothing had failed before. What went wrong is shown until an answer comes. */
function resume(state: LoopState): true {
  state.failed = false;
  state.asks_at_once = true;
  state.failures = 0;
  state.failed_waits = 0;
  return true;
}

function comeBack(state: LoopState, reason: "hidden" | "offline"): boolean {
  const wasAway = state[reason];
  state[reason] = false;
  if (!(wasAway && mayRequest(state))) return false;
  return resume(state);
}

export function mayRequest(state: LoopState): boolean {
  return state.running && !state.failed && !state.hidden && !state.offline;
}

function cancelTask(draft: LoopDraft): void {
  const { task } = draft.state;
  if (!task || task.type === "delivery") return;
  draft.effects.push({ type: "cancel", id: task.id });
  draft.state.task = null;
}

export function sleep(draft: LoopDraft, ms: number, jitterMs?: number): void {
  draft.state.task = { type: "sleep", id: startSleep(draft, ms, jitterMs) };
}

/** A sleep of the loop or of something beside it. */
export function startSleep(draft: LoopDraft, ms: number, jitterMs = jitterOf(ms)): number {
  const id = nextId(draft);
  draft.effects.push({ type: "sleep", id, ms, jitter_ms: jitterMs });
  return id;
}

/** Any answer may change the pace. */
export function takePace(state: LoopState, answer: Answer): void {
  if (answer.poll_interval_s !== undefined && answer.poll_interval_s > 0) state.interval_ms = answer.poll_interval_s * 1_000;
}

/** A proxy that cuts requests that wait, and no others, must not make a hot loop. */
function didWait({ task }: LoopState): boolean {
  return task?.type === "request" && task.wait_s !== null;
}

/** An answer came, and it is one of Headmark. */
export function succeed(state: LoopState): void {
  if (didWait(state)) state.failed_waits = 0;
  state.task = null;
  state.failures = state.failed_waits;
  state.trouble = null;
  state.asks_at_once = false;
}

/** An answer without news that says why. */
export function refuse(draft: LoopDraft, answer: Answer): void {
  if (canRepeat(answer)) return retry(draft, troubleOf(answer), answer.retry_after_s);
  Object.assign(draft.state, { task: null, failed: true, trouble: troubleOf(answer) });
}

/** An answer that says nothing and has no code is of a captive portal, a proxy or a firewall. A 401 needs the app all the same. */
export function canRepeat({ status, code }: Answer): boolean {
  return isRetryable(status) || (code === undefined && status !== 401);
}

export function retry(draft: LoopDraft, trouble: Trouble, retryAfterS?: number): void {
  const { state } = draft;
  state.failures += 1;
  if (didWait(state)) state.failed_waits += 1;
  state.trouble = trouble;
  state.asks_at_once = true;
  state.task = null;
  // What the server asks for also holds for a user who comes back to the page.
  state.not_before = Math.max(state.not_before, draft.now + retryAfterMs(retryAfterS));
  if (state.running) sleep(draft, ...pauseOf(state.failures, retryAfterS));
}

/** The first that holds; `settled` and `unsettled` are the machine's own. */
export function statusOf<Status>(state: LoopState, settled: Status, unsettled: Status, isSettled: boolean) {
  if (!state.running) return "idle";
  if (state.failed) return "failed";
  if (state.hidden || state.offline) return "paused";
  if (state.trouble) return "retrying";
  return isSettled ? settled : unsettled;
}

export const initialLoop = (intervalMs: number): LoopState => ({
  next_id: 1,
  running: false,
  hidden: false,
  offline: false,
  failed: false,
  trouble: null,
  task: null,
  not_before: 0,
  interval_ms: intervalMs,
  failures: 0,
  failed_waits: 0,
  asks_at_once: true,
});
