// The device's cursor on the server: what it has stored, put now and then. The server keeps rows for
// as long as a device that was seen lately has not fetched them.

import type { Answer } from "../answer.js";
import { canRepeat, nextId, startSleep } from "../loop.js";
import { pauseOf, retryAfterMs } from "../pace.js";
import type { CursorState, InboxDraft as Draft } from "./types.js";

export function initialCursor(): CursorState {
  return { sent: 0, not_before: 0, paused_until: 0, failures: 0, task: null };
}

/** Puts the cursor if it has moved, or sleeps until it may be put. */
export function putCursor(draft: Draft): void {
  const { state, now } = draft;
  // What ends after a stop may have moved it.
  if (!state.running) return putLastCursor(draft);
  const { cursor, position, config } = state;
  if (config.cursor_gap_ms === null || !position || cursor.task) return;
  if (state.offline || position.after <= cursor.sent) return;
  const notBefore = Math.max(cursor.not_before, cursor.paused_until);
  if (now < notBefore) return sleep(draft, notBefore - now);
  send(draft, position.after, config.cursor_gap_ms);
}

/** At a stop and after it: at once. */
export function putLastCursor(draft: Draft): void {
  const { cursor, position, config, offline } = draft.state;
  if (cursor.task?.type === "sleep") {
    draft.effects.push({ type: "cancel", id: cursor.task.id });
    draft.state.cursor = { ...cursor, task: null };
  }
  if (config.cursor_gap_ms === null || !position || offline || draft.state.cursor.task) return;
  if (draft.now >= cursor.paused_until && position.after > cursor.sent) send(draft, position.after, config.cursor_gap_ms);
}

/** Numbers begin again after a reset, and so does the cursor. When it may be put stays as it is. */
export function forgetCursor(draft: Draft): void {
  const { cursor } = draft.state;
  if (cursor.task) draft.effects.push({ type: "cancel", id: cursor.task.id });
  draft.state.cursor = { ...cursor, sent: 0, task: null };
}

export function answerCursor(draft: Draft, id: number, answer: Answer | null): void {
  const { cursor } = draft.state;
  if (cursor.task?.type !== "request" || cursor.task.id !== id) return;
  if (answer && answer.status >= 200 && answer.status < 300) {
    draft.state.cursor = { ...cursor, sent: cursor.task.seq, failures: 0, task: null };
    return putCursor(draft);
  }
  // Nobody may say so now. It is put again when the loop goes on: after the next items, or after signing in.
  if (answer?.status === 401) {
    draft.state.cursor = { ...cursor, failures: 0, task: null };
    return;
  }
  // A refused cursor is not put again before it moves. Reading goes on: the device has its position.
  if (answer && !canRepeat(answer)) {
    draft.state.cursor = { ...cursor, sent: cursor.task.seq, failures: 0, task: null };
    return;
  }
  const failures = cursor.failures + 1;
  const paused_until = draft.now + retryAfterMs(answer?.retry_after_s);
  draft.state.cursor = { ...cursor, failures, paused_until, task: null };
  if (draft.state.running) sleep(draft, ...pauseOf(failures, answer?.retry_after_s));
}

export function wakeCursor(draft: Draft, id: number): void {
  const { cursor } = draft.state;
  if (cursor.task?.id !== id) return;
  draft.state.cursor = { ...cursor, task: null };
  putCursor(draft);
}

function send(draft: Draft, seq: number, gapMs: number): void {
  const id = nextId(draft);
  draft.state.cursor = { ...draft.state.cursor, not_before: draft.now + gapMs, task: { type: "request", id, seq } };
  draft.effects.push({ type: "put_cursor", id, seq });
}

function sleep(draft: Draft, ms: number, jitterMs?: number): void {
  draft.state.cursor = { ...draft.state.cursor, task: { type: "sleep", id: startSleep(draft, ms, jitterMs) } };
}
