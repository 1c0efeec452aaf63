// Resets on their way. The app shows them as done at once; each is sent until it is answered, because
// a repeat changes nothing. A refusal brings the number back.

import { troubleOf } from "../answer.js";
import { canRepeat, nextId, startSleep } from "../loop.js";
import { pauseOf, retryAfterMs } from "../pace.js";
import { headOf, withAnswer } from "./summary.js";
import type { PollerDraft as Draft, PollerEvent, PollerState, Reset } from "./types.js";

type ResetEvent = Extract<PollerEvent, { type: "reset" }>;
type ResetAnswer = Extract<PollerEvent, { type: "reset_answer" }>;

export function addReset(draft: Draft, event: ResetEvent): void {
  const { state } = draft;
  const { kind, name } = event;
  const up_to = event.up_to ?? headOf(state.view.summary, kind, name);
  // The user cannot have seen what was never shown, unless the app knows better.
  if (up_to === undefined) return;
  const pending = state.resets.find((reset) => reset.kind === kind && reset.name === name);
  if (pending && pending.up_to >= up_to) return;
  const base = pending ?? { kind, name, sent_up_to: 0, failures: 0, not_before: 0, task: null };
  const reset: Reset = { ...base, up_to };
  state.resets = [...state.resets.filter((other) => other !== pending), reset];
  if (!reset.task) send(draft, reset);
}

/** Sends what waited to be online, for a start, or for the first answer. */
export function sendHeldResets(draft: Draft): void {
  for (const reset of draft.state.resets) if (!reset.task) send(draft, reset);
}

/** Cancels the timers of resets, which then wait. Requests in flight continue. */
export function holdResets(draft: Draft): void {
  for (const reset of draft.state.resets) {
    if (reset.task?.type !== "sleep") continue;
    draft.effects.push({ type: "cancel", id: reset.task.id });
    replace(draft, reset, { ...reset, task: null });
  }
}

/** In another epoch, heads name other things. What is in flight is forgotten with its revision. */
export function dropResets(draft: Draft): void {
  for (const { task } of draft.state.resets) if (task) draft.effects.push({ type: "cancel", id: task.id });
  draft.state.resets = [];
}

export function answerReset(draft: Draft, event: ResetAnswer): void {
  const { state } = draft;
  const reset = byTask(draft, event.id);
  if (!reset) return;
  if (event.status === 200 && event.body) {
    const { body } = event;
    if (state.known && isNewer(state, body.revision)) {
      state.known = { ...withAnswer(state.known, reset, body, state.config.cap), revision: body.revision };
      if (body.revision > state.revision) state.shared_revision = null;
      state.revision = body.revision;
    }
    const rest = reset.up_to > reset.sent_up_to ? { ...reset, task: null, failures: 0 } : null;
    replace(draft, reset, rest);
    if (rest) send(draft, rest);
    return;
  }
  if (canRepeat(event)) return retry(draft, reset, event.retry_after_s);
  replace(draft, reset, null);
  draft.effects.push({ type: "refused", kind: reset.kind, name: reset.name, trouble: troubleOf(event) });
}

/** At the same revision, a whole poll has what this answer says, and maybe a later broadcast or dot. */
function isNewer({ revision, shared_revision, known }: PollerState, answered: number): boolean {
  const isPolled = shared_revision !== null && !known?.degraded;
  return answered > revision || (answered === revision && !isPolled);
}

/** No answer: the reset may have taken effect or not. */
export function failReset(draft: Draft, id: number): void {
  const reset = byTask(draft, id);
  if (reset) retry(draft, reset);
}

export function wakeReset(draft: Draft, id: number): void {
  const reset = byTask(draft, id);
  if (reset) send(draft, reset);
}

function send(draft: Draft, reset: Reset): void {
  const { state } = draft;
  // Without a first answer, the one to this reset could not be compared with those to polls.
  if (state.offline || !state.running || state.known === null) return replace(draft, reset, { ...reset, task: null });
  if (draft.now < reset.not_before) return sleep(draft, reset, reset.not_before - draft.now);
  const { kind, name, up_to } = reset;
  const id = nextId(draft);
  replace(draft, reset, { ...reset, sent_up_to: up_to, task: { type: "request", id } });
  draft.effects.push({ type: "send_reset", id, kind, name, up_to });
}

function retry(draft: Draft, reset: Reset, retryAfterS?: number): void {
  const failures = reset.failures + 1;
  // What the server asks for also holds after a stop and a start.
  const failed: Reset = { ...reset, failures, not_before: draft.now + retryAfterMs(retryAfterS), task: null };
  replace(draft, reset, failed);
  if (draft.state.running) sleep(draft, failed, ...pauseOf(failures, retryAfterS));
}

function sleep(draft: Draft, reset: Reset, ms: number, jitterMs?: number): void {
  replace(draft, reset, { ...reset, task: { type: "sleep", id: startSleep(draft, ms, jitterMs) } });
}

function byTask(draft: Draft, id: number): Reset | undefined {
  return draft.state.resets.find((reset) => reset.task?.id === id);
}

function replace(draft: Draft, reset: Reset, by: Reset | null): void {
  draft.state.resets = draft.state.resets.flatMap((other) => (other !== reset ? [other] : by ? [by] : []));
}
