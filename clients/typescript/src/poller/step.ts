// The poller as a pure function: `step(state, event, now)` is the next state and what to do. It
// reads no clock, draws no number and sends nothing. `clients/README.md` explains each rule.

import { NO_ANSWER } from "../answer.js";
import { command, initialLoop, mayRequest, nextId, refuse, retry, sleep, statusOf, succeed, takePace } from "../loop.js";
import { DEFAULT_INTERVAL_MS, isEarly, MIN_GAP_MS, pauseOf } from "../pace.js";
import type { UnreadSummary } from "../types.js";
import { addReset, answerReset, dropResets, failReset, holdResets, sendHeldResets, wakeReset } from "./resets.js";
import { keepMissing, withResets } from "./summary.js";
import type { PollerConfig, PollerDraft, PollerEffect, PollerEvent, PollerState, UnreadView } from "./types.js";

type PollAnswer = Extract<PollerEvent, { type: "answer" }>;
type Request = Extract<PollerState["task"], { type: "request" }>;

export function initialPoller(config: PollerConfig): PollerState {
  return {
    ...initialLoop(DEFAULT_INTERVAL_MS),
    config,
    tag: null,
    may_wait: true,
    known: null,
    revision: -1,
    shared_revision: null,
    resets: [],
    view: { summary: null, status: "idle", trouble: null },
  };
}

export function stepPoller(before: PollerState, event: PollerEvent, now: number): [PollerState, PollerEffect[]] {
  const draft: PollerDraft = { state: { ...before }, effects: [], now };
  apply(draft, event);
  const view = viewOf(draft.state);
  if (JSON.stringify(view) !== JSON.stringify(before.view)) {
    draft.state.view = view;
    draft.effects.push({ type: "show", view });
  }
  return [draft.state, draft.effects];
}

function apply(draft: PollerDraft, event: PollerEvent): void {
  const { task } = draft.state;
  switch (event.type) {
    case "reset":
      return addReset(draft, event);
    case "reset_answer":
      return answerReset(draft, event);
    case "answer":
      return task?.type === "request" && task.id === event.id ? answer(draft, event, task) : undefined;
    case "failed":
      return task?.id === event.id ? retry(draft, NO_ANSWER) : failReset(draft, event.id);
    case "woke":
      return task?.id === event.id ? poll(draft) : wakeReset(draft, event.id);
    case "stop":
      command(draft, "stop");
      return holdResets(draft);
    default: {
      const goesOn = command(draft, event.type);
      if (goesOn || event.type === "online") sendHeldResets(draft);
      if (!goesOn) return;
      draft.state.may_wait = true;
      return poll(draft);
    }
  }
}

function viewOf(state: PollerState): UnreadView {
  const summary = state.known && withResets(state.known, state.resets);
  return { summary, status: statusOf(state, "live", "loading", state.known !== null), trouble: state.trouble };
}

/** Sends a poll, or sleeps until one may be sent. */
function poll(draft: PollerDraft): void {
  const { state, now } = draft;
  state.task = null;
  if (!mayRequest(state)) return;
  if (now < state.not_before) return sleep(draft, state.not_before - now);
  const wait_s = !state.asks_at_once && canWait(state) ? state.config.wait_s : null;
  const id = nextId(draft);
  state.task = { type: "request", id, started_at: now, wait_s };
  state.not_before = now + MIN_GAP_MS;
  draft.effects.push({ type: "poll", id, wait_s, tag: state.tag });
}

/** A wait without a tag would be a hot loop. */
function canWait({ may_wait, tag, config }: PollerState): boolean {
  return may_wait && tag !== null && config.wait_s > 0;
}

function answer(draft: PollerDraft, event: PollAnswer, { started_at, wait_s }: Request): void {
  const { state } = draft;
  takePace(state, event);
  const isHeld = wait_s === null || !isEarly(draft.now - started_at, wait_s);
  if (event.status === 200 && event.body) {
    const { failures } = state;
    const isNews = !isKnown(state, event.body);
    succeed(state);
    if (!accept(draft, event.body, event.tag)) return askAgain(draft, failures + 1);
    return next(draft, isNews || isHeld);
  }
  if (wait_s !== null && event.status === 400 && event.code === "wait_needs_tag") return stopWaiting(draft);
  if (event.status !== 304) return refuse(draft, event);
  succeed(state);
  next(draft, isHeld);
}

/** A proxy drops `If-None-Match`. Without a wait the server needs none. */
function stopWaiting(draft: PollerDraft): void {
  succeed(draft.state);
  draft.state.may_wait = false;
  poll(draft);
}

/** Polls again, unless the server does not hold polls now. */
function next(draft: PollerDraft, mayPoll: boolean): void {
  if (mayPoll && canWait(draft.state)) poll(draft);
  else sleep(draft, draft.state.interval_ms);
}

/** Where a proxy changes tags, this comes instead of a 304. */
function isKnown({ known, revision, shared_revision }: PollerState, body: UnreadSummary): boolean {
  return known?.epoch === body.epoch && revision === body.revision && shared_revision === (body.shared_revision ?? null);
}

/** An older answer was on its way while a newer one arrived. Ask again soon, but never in a hot loop. */
function askAgain(draft: PollerDraft, failures: number): void {
  draft.state.failures = failures;
  sleep(draft, ...pauseOf(failures));
}

/** Takes an answer over, unless it is older than what is known. */
function accept(draft: PollerDraft, body: UnreadSummary, tag: string | undefined): boolean {
  const { state } = draft;
  if (state.known && state.known.epoch !== body.epoch) forget(draft);
  if (isOlder(state, body)) return false;
  if (body.revision !== undefined) {
    if (body.revision > state.revision || body.shared_revision !== undefined)
      state.shared_revision = body.shared_revision ?? null;
    state.revision = body.revision;
  }
  const isFirst = state.known === null;
  state.known = body.degraded && state.known ? keepMissing(state.known, body) : body;
  state.tag = tag ?? null;
  if (isFirst) sendHeldResets(draft);
  return true;
}

/** A restored database gives the same revisions to other states, so nothing that is known still counts. */
function forget(draft: PollerDraft): void {
  Object.assign(draft.state, { known: null, tag: null, revision: -1, shared_revision: null });
  dropResets(draft);
}

function isOlder(state: PollerState, body: UnreadSummary): boolean {
  if (body.revision === undefined || body.revision > state.revision) return false;
  if (body.revision < state.revision) return true;
  return body.shared_revision !== undefined && state.shared_revision !== null && body.shared_revision < state.shared_revision;
}
