// The poller's states, events and effects. `clients/README.md` specifies them for every language; the
// names are those of the vectors.

import type { Answer, Trouble } from "../answer.js";
import type { Command, LoopDraft, LoopEffect, LoopState } from "../loop.js";
import type { UnreadSummary } from "../types.js";

/** The kinds of badges that have a head, so that a reset can say what the user saw. */
export type ResetKind = "counters" | "broadcasts" | "dots";

export type PollerStatus = "idle" | "loading" | "live" | "retrying" | "paused" | "failed";

/** What the app shows. */
export interface UnreadView {
  summary: UnreadSummary | null;
  status: PollerStatus;
  /** With `retrying` and `failed`: the reason. */
  trouble: Trouble | null;
}

export interface PollerConfig {
  /** How long the server may hold a poll; 0: never. */
  wait_s: number;
  /** The `cap` of the polls, so that answers to resets are shown alike. */
  cap: number | null;
}

export interface Reset {
  kind: ResetKind;
  name: string;
  /** What the user saw. */
  up_to: number;
  /** The `up_to` of the request in flight. */
  sent_up_to: number;
  failures: number;
  /** The server asked not to send it before. */
  not_before: number;
  /** None: it waits to be online, for a start, or for the first answer. */
  task: { type: "request" | "sleep"; id: number } | null;
}

export interface PollerState extends LoopState {
  config: PollerConfig;
  tag: string | null;
  /** False: tags do not reach the server, so that it holds no poll. */
  may_wait: boolean;
  known: UnreadSummary | null;
  /** Answers below it are older; -1: nothing is known. */
  revision: number;
  /** Answers at `revision` below it are older; null: there is nothing to compare with. */
  shared_revision: number | null;
  resets: Reset[];
  view: UnreadView;
}

/** The answer to a reset, of any of the three kinds. */
export interface ResetBody {
  head: number;
  revision: number;
  unread?: number;
  lit?: boolean;
}

export type PollerEvent =
  | { type: Command }
  | { type: "reset"; kind: ResetKind; name: string; up_to?: number }
  | ({ type: "answer"; id: number; tag?: string; body?: UnreadSummary } & Answer)
  | ({ type: "reset_answer"; id: number; body?: ResetBody } & Answer)
  | { type: "failed"; id: number }
  | { type: "woke"; id: number };

export type PollerEffect =
  | LoopEffect
  | { type: "poll"; id: number; wait_s: number | null; tag: string | null }
  | { type: "send_reset"; id: number; kind: ResetKind; name: string; up_to: number }
  | { type: "show"; view: UnreadView }
  /** A reset was refused for good; the number is back. */
  | { type: "refused"; kind: ResetKind; name: string; trouble: Trouble };

export interface PollerDraft extends LoopDraft {
  state: PollerState;
  effects: PollerEffect[];
}
