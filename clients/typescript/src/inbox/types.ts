// The inbox reader's states, events and effects. `clients/README.md` specifies them for every
// language; the names are those of the vectors.

import type { Answer, Trouble } from "../answer.js";
import type { Command, LoopDraft, LoopEffect, LoopState } from "../loop.js";
import type { InboxItem, InboxPage } from "../types.js";

/** Up to where a device has the inbox. Store it in one transaction with the items. */
export interface InboxPosition {
  epoch: string;
  after: number;
}

export type InboxStatus = "idle" | "reading" | "live" | "retrying" | "paused" | "failed";

export interface InboxConfig {
  /** How long the server may hold a request; 0: never. */
  wait_s: number;
  /** Items in a page. */
  limit: number;
  /** The least time between two updates of the device's cursor; null: there is no device. */
  cursor_gap_ms: number | null;
}

/** What the app has to store before the reader goes on. */
export type Delivery = { type: "deliver"; items: InboxItem[]; position: InboxPosition; has_more: boolean } | { type: "reset" };

export interface CursorState {
  /** The last cursor that the server has. */
  sent: number;
  not_before: number;
  /** As long as the server asked for, also at a stop. */
  paused_until: number;
  failures: number;
  task: { type: "request"; id: number; seq: number } | { type: "sleep"; id: number } | null;
}

export interface InboxState extends LoopState {
  config: InboxConfig;
  /** Null: nothing was read yet, or everything is to be read again. */
  position: InboxPosition | null;
  /** What the app has not confirmed yet. */
  delivery: Delivery | null;
  /** Everything up to the head was delivered. */
  has_all: boolean;
  cursor: CursorState;
  status: InboxStatus;
}

export type InboxEvent =
  | { type: Command }
  | ({ type: "answer"; id: number; body?: InboxPage; earliest_seq?: number } & Answer)
  | ({ type: "cursor_answer"; id: number } & Answer)
  /** The app stored a delivery, or its transaction failed. */
  | { type: "delivered" | "not_delivered"; id: number }
  | { type: "failed"; id: number }
  | { type: "woke"; id: number };

export type InboxEffect =
  | LoopEffect
  | { type: "fetch"; id: number; after: number | null; epoch: string | null; wait_s: number | null; limit: number }
  /** Hand the items to the app; none after a gap. Answer with `delivered` once they and the position are stored. */
  | { type: "deliver"; id: number; items: InboxItem[]; position: InboxPosition }
  /** The app drops its position. Answer with `delivered`. */
  | { type: "reset"; id: number }
  /** Items after `after` and before `earliest_seq` expired before the device fetched them. */
  | { type: "gap"; after: number; earliest_seq: number }
  | { type: "put_cursor"; id: number; seq: number }
  | { type: "status"; status: InboxStatus; trouble: Trouble | null };

export interface InboxDraft extends LoopDraft {
  state: InboxState;
  effects: InboxEffect[];
}
