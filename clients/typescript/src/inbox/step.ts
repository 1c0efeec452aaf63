// The inbox reader as a pure function: `step(state, event, now)` is the next state and what to do.
// Each item goes to the app once, in order: the next page is not asked for before the app has stored
// this one. `clients/README.md` explains each rule.

import { NO_ANSWER, troubleOf } from "../answer.js";
import { command, initialLoop, mayRequest, nextId, refuse, retry, sleep, statusOf, succeed, takePace } from "../loop.js";
import { DEFAULT_INTERVAL_MS, isEarly, MIN_GAP_MS } from "../pace.js";
import type { InboxPage } from "../types.js";
import { answerCursor, forgetCursor, initialCursor, putCursor, putLastCursor, wakeCursor } from "./cursor.js";
import type { Delivery, InboxConfig, InboxDraft, InboxEffect, InboxEvent, InboxPosition, InboxState } from "./types.js";

type Ended = Extract<InboxEvent, { id: number }>;
type PageAnswer = Extract<InboxEvent, { type: "answer" }>;
type Request = Extract<InboxState["task"], { type: "request" }>;

/** Starts from where the app's storage is; null for a new device. */
export function initialInbox(config: InboxConfig, position: InboxPosition | null): InboxState {
  const cursor = initialCursor();
  return { ...initialLoop(DEFAULT_INTERVAL_MS), config, position, delivery: null, has_all: false, cursor, status: "idle" };
}

export function stepInbox(before: InboxState, event: InboxEvent, now: number): [InboxState, InboxEffect[]] {
  const draft: InboxDraft = { state: { ...before }, effects: [], now };
  apply(draft, event);
  const { state, effects } = draft;
  state.status = statusOf(state, "live", "reading", state.has_all);
  if (state.status !== before.status || JSON.stringify(state.trouble) !== JSON.stringify(before.trouble)) {
    effects.push({ type: "status", status: state.status, trouble: state.trouble });
  }
  return [state, effects];
}

function apply(draft: InboxDraft, event: InboxEvent): void {
  if ("id" in event) {
    const { task } = draft.state;
    if (task?.id === event.id) end(draft, event, task);
    else endCursor(draft, event);
  } else if (command(draft, event.type)) {
    putCursor(draft);
    next(draft);
  } else if (event.type === "stop") {
    putLastCursor(draft);
  }
}

/** What the loop waited for has happened. */
function end(draft: InboxDraft, event: Ended, task: NonNullable<InboxState["task"]>): void {
  switch (event.type) {
    case "answer":
      if (task.type === "request") answer(draft, event, task);
      return;
    case "delivered":
      return delivered(draft);
    case "not_delivered":
      return retry(draft, { status: 0, code: "not_delivered" });
    case "failed":
      return retry(draft, NO_ANSWER);
    case "woke":
      draft.state.task = null;
      return next(draft);
  }
}

/** Of the cursor, or of something that was cancelled. */
function endCursor(draft: InboxDraft, event: Ended): void {
  if (event.type === "cursor_answer") answerCursor(draft, event.id, event);
  else if (event.type === "failed") answerCursor(draft, event.id, null);
  else if (event.type === "woke") wakeCursor(draft, event.id);
}

/** What comes next: the delivery that the app has not stored, or a request, or a sleep. */
function next(draft: InboxDraft): void {
  const { state, now } = draft;
  if (!state.running || state.failed || state.task) return;
  if (state.delivery) return deliver(draft, state.delivery);
  if (!mayRequest(state)) return;
  if (now < state.not_before) return sleep(draft, state.not_before - now);
  const { position, config } = state;
  const wait_s = position && !state.asks_at_once && config.wait_s > 0 ? config.wait_s : null;
  const id = nextId(draft);
  state.task = { type: "request", id, started_at: now, wait_s };
  state.not_before = now + MIN_GAP_MS;
  const { after, epoch } = position ?? { after: null, epoch: null };
  draft.effects.push({ type: "fetch", id, after, epoch, wait_s, limit: config.limit });
}

function deliver(draft: InboxDraft, delivery: Delivery): void {
  const id = nextId(draft);
  draft.state.delivery = delivery;
  draft.state.task = { type: "delivery", id };
  if (delivery.type === "reset") draft.effects.push({ type: "reset", id });
  else draft.effects.push({ type: "deliver", id, items: delivery.items, position: delivery.position });
}

function answer(draft: InboxDraft, event: PageAnswer, { started_at, wait_s }: Request): void {
  const { state } = draft;
  const { status, code, body, earliest_seq } = event;
  takePace(state, event);
  if (status === 410 && code === "inbox_reset") return reset(draft);
  if (status === 410 && code === "cursor_expired" && earliest_seq !== undefined && state.position) {
    return skip(draft, state.position, earliest_seq);
  }
  if (status !== 200 || !body) return refuse(draft, event);
  if (state.position && state.position.epoch !== body.epoch) return reset(draft);
  // Of a request that did not wait, the next one does.
  const isHeld = wait_s === null ? state.config.wait_s > 0 : !isEarly(draft.now - started_at, wait_s);
  take(draft, body, isHeld);
}

function take(draft: InboxDraft, page: InboxPage, isHeld: boolean): void {
  const { state } = draft;
  const after = state.position?.after ?? 0;
  // It would come again and again, without a pause.
  if (page.has_more && page.next_after <= after) return retry(draft, troubleOf({ status: 200 }));
  succeed(state);
  const items = page.items.filter((item) => item.seq > after);
  const position = { epoch: page.epoch, after: Math.max(after, page.next_after) };
  if (page.has_more) state.not_before = draft.now;
  if (items.length > 0) return deliver(draft, { type: "deliver", items, position, has_more: page.has_more });
  state.position = position;
  state.has_all = !page.has_more;
  if (page.has_more || isHeld) next(draft);
  else sleep(draft, state.interval_ms);
}

function delivered(draft: InboxDraft): void {
  const { state } = draft;
  const { delivery } = state;
  succeed(state);
  state.delivery = null;
  if (delivery?.type === "deliver") {
    state.position = delivery.position;
    state.has_all = !delivery.has_more;
    // After a gap, whether there is more.
    state.asks_at_once = delivery.items.length === 0;
    putCursor(draft);
  }
  next(draft);
}

/** The numbers start again: the app drops its position, and the reader fetches what the server keeps. */
function reset(draft: InboxDraft): void {
  succeed(draft.state);
  draft.state.position = null;
  draft.state.has_all = false;
  forgetCursor(draft);
  deliver(draft, { type: "reset" });
}

function skip(draft: InboxDraft, position: InboxPosition, earliestSeq: number): void {
  succeed(draft.state);
  draft.effects.push({ type: "gap", after: position.after, earliest_seq: earliestSeq });
  // The app stores the position, or it would hear of the same gap at every start.
  const after = Math.max(position.after, earliestSeq - 1);
  deliver(draft, { type: "deliver", items: [], position: { ...position, after }, has_more: true });
}
