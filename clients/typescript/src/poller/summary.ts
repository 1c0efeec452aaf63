// Pure functions over unread summaries: which is newer, what a degraded one leaves out, what a reset
// in flight will clear.

import type { Counter, Dot, UnreadSummary } from "../types.js";
import type { Reset, ResetBody, ResetKind } from "./types.js";

const KINDS = ["counters", "broadcasts", "dots", "feed", "chats", "notifications", "views"] as const;

/** A degraded answer, with the last known parts where it has none. */
export function keepMissing(known: UnreadSummary, answer: UnreadSummary): UnreadSummary {
  const kept: UnreadSummary = { ...answer };
  for (const kind of KINDS) {
    if (kept[kind] === undefined && known[kind] !== undefined) Object.assign(kept, { [kind]: known[kind] });
  }
  if (kept.total === undefined && known.total !== undefined) {
    kept.total = known.total;
    if (known.capped !== undefined) kept.capped = known.capped;
  }
  if (kept.revision === undefined && known.revision !== undefined) kept.revision = known.revision;
  if (kept.shared_revision === undefined && known.shared_revision !== undefined) {
    kept.shared_revision = known.shared_revision;
  }
  return kept;
}

/** The head that was shown; a reset without `up_to` means this one. */
export function headOf(summary: UnreadSummary | null, kind: ResetKind, name: string): number | undefined {
  return summary?.[kind]?.[name]?.head;
}

/** What the user is shown while resets are on their way: what they will clear is gone. */
export function withResets(known: UnreadSummary, resets: readonly Reset[]): UnreadSummary {
  let shown = known;
  for (const { kind, name, up_to } of resets) {
    const entry = known[kind]?.[name];
    if (entry) shown = withEntry(shown, kind, name, "lit" in entry ? clearedDot(entry, up_to) : clearedCounter(entry, up_to));
  }
  return shown;
}

/** What the answer to a reset says of its badge. */
export function withAnswer(known: UnreadSummary, reset: Reset, body: ResetBody, cap: number | null): UnreadSummary {
  const { kind, name } = reset;
  if (known[kind] === undefined) return known;
  if (kind === "dots") return withEntry(known, kind, name, { lit: body.lit ?? false, head: body.head });
  const unread = body.unread ?? 0;
  const entry: Counter = { unread: cap === null ? unread : Math.min(unread, cap), head: body.head };
  if (cap !== null) entry.capped = unread > cap;
  return withEntry(known, kind, name, entry);
}

function clearedDot(dot: Dot, upTo: number): Dot {
  return { ...dot, lit: dot.lit && dot.head > upTo };
}

/** Nothing up to `up_to` counts as unread. */
function clearedCounter(counter: Counter, upTo: number): Counter {
  const after = Math.max(0, counter.head - upTo);
  if (after >= counter.unread) return counter;
  const cleared: Counter = { ...counter, unread: after };
  if (counter.capped !== undefined) cleared.capped = false;
  return cleared;
}

function withEntry(summary: UnreadSummary, kind: ResetKind, name: string, entry: Counter | Dot): UnreadSummary {
  const changed = { ...summary, [kind]: { ...summary[kind], [name]: entry } };
  if (kind !== "dots" && summary.total !== undefined && isSumOfAll(summary)) {
    const before = summary[kind]?.[name]?.unread ?? 0;
    changed.total = summary.total - before + (entry as Counter).unread;
  }
  return changed;
}

/**
 * Whether the total is the plain sum of its kinds. Where it is not (a cap, or settings that leave
 * something out), nobody but the server can say what it becomes.
 */
function isSumOfAll(summary: UnreadSummary): boolean {
  const { counters, broadcasts, chats, notifications } = summary;
  if (!(counters && broadcasts && chats && notifications)) return false;
  const parts = [counters, broadcasts, notifications].flatMap((kind) => Object.values(kind)).concat([chats]);
  const isCapped = parts.some((part) => part.capped === true);
  return !isCapped && parts.reduce((sum, part) => sum + part.unread, 0) === summary.total;
}
