// Puts what a poll says next to what the rows say: one line for each number.

import type { UnreadSummary } from "@headmark/client";
import type { Explain } from "../terms.js";
import { sizeOf } from "../ui/strip.js";

export interface Line {
  id: string;
  kind: string;
  name: string;
  /** Null: this number is not in the poll by itself, it is a term of the one above. */
  polled: number | null;
  explained: number;
  head: number | null;
  mark: number | null;
  takenBack: number | null;
  note: string;
}

export function linesOf(summary: UnreadSummary, explain: Explain): Line[] {
  return [
    ...counters(summary, explain),
    ...channels(summary, explain),
    ...dots(summary, explain),
    ...feed(summary, explain),
    ...chats(summary, explain),
    ...notifications(summary, explain),
  ];
}

/** A user may follow thousands: those behind the number come first, and the rest is left out. */
export const MAX_TERMS = 20;

/** Numbers of one revision that stay different are a bug, or somebody changed a store by hand. */
export function differs(line: Line): boolean {
  return line.polled !== null && line.polled !== line.explained;
}

/** How many numbers differ, the total among them. */
export function differencesOf(summary: UnreadSummary, explain: Explain): number {
  return linesOf(summary, explain).filter(differs).length + (summary.total === explain.total ? 0 : 1);
}

/** What the rows say of each number that a poll has, to be compared. */
export function explainedOf(summary: UnreadSummary, explain: Explain): string {
  return linesOf(summary, explain)
    .filter(({ polled }) => polled !== null)
    .map(({ id, explained }) => `${id} ${explained}`)
    .join("\n");
}

function counters(summary: UnreadSummary, explain: Explain): Line[] {
  return Object.entries(explain.counters).map(([name, { head, mark, retracted, unread }]) => ({
    id: `counters.${name}`,
    kind: "counter",
    name,
    polled: summary.counters?.[name]?.unread ?? 0,
    explained: unread,
    head,
    mark,
    takenBack: sizeOf(retracted),
    note: retracted === "" ? "" : `taken back: ${retracted}`,
  }));
}

function channels(summary: UnreadSummary, explain: Explain): Line[] {
  return Object.entries(explain.broadcasts).map(([name, { head, mark, seq_at_enrolment, gone, unread }]) => ({
    id: `broadcasts.${name}`,
    kind: "broadcast",
    name,
    polled: summary.broadcasts?.[name]?.unread ?? 0,
    explained: unread,
    head,
    mark: Math.max(mark, seq_at_enrolment),
    takenBack: gone,
    note: seq_at_enrolment > mark ? `came when it was at ${seq_at_enrolment}` : "",
  }));
}

function dots(summary: UnreadSummary, explain: Explain): Line[] {
  return Object.entries(explain.dots).map(([name, { head, mark, lit, after_enrolment }]) => ({
    id: `dots.${name}`,
    kind: "dot",
    name,
    polled: summary.dots?.[name]?.lit ? 1 : 0,
    explained: lit ? 1 : 0,
    head,
    mark,
    takenBack: null,
    note: after_enrolment ? (lit ? "lit" : "cleared") : "lit before the user came",
  }));
}

function feed(summary: UnreadSummary, explain: Explain): Line[] {
  const { unread, creators } = explain.feed;
  const whole = { ...ofNoStream("feed", "feed", summary.feed?.unread ?? 0, unread), note: noteOf(creators.length, "creator") };
  const terms = shownOf(creators).map(({ user_id, head, mark, gone, unread }) => ({
    ...term(`feed.${user_id}`, "posts of", user_id, unread),
    head,
    mark,
    takenBack: gone,
  }));
  return [whole, ...terms];
}

function chats(summary: UnreadSummary, explain: Explain): Line[] {
  const { unread, groups, directs } = explain.chats;
  return [
    {
      ...ofNoStream("chats", "chats", summary.chats?.unread ?? 0, unread),
      note: [noteOf(groups.length, "group"), noteOf(directs.length, "direct chat")].join(", "),
    },
    ...shownOf(groups).map(({ group_id, head, read_seq, unread_from, gone, unread, mentions, level }) => ({
      ...term(`chats.group.${group_id}`, "group", group_id, unread),
      head,
      mark: unread_from === undefined ? read_seq : unread_from - 1,
      takenBack: gone,
      note: notesOf(level, mentions, unread_from !== undefined),
    })),
    ...shownOf(directs).map(({ peer_id, head, mark, recalled, unread, level }) => ({
      ...term(`chats.direct.${peer_id}`, "direct with", peer_id, unread),
      head,
      mark,
      takenBack: recalled,
      note: level === "none" ? "level none: not in the sum" : "",
    })),
  ];
}

type Level = Explain["chats"]["groups"][number]["level"];

function notesOf(level: Level, mentions: number, isAgain: boolean): string {
  const inSum = { all: "", mentions: "only mentions in the sum", none: "not in the sum" }[level];
  const named = mentions === 0 ? "" : `mentions: ${mentions}`;
  return [named, isAgain ? "unread again" : "", inSum].filter((note) => note !== "").join(", ");
}

function notifications(summary: UnreadSummary, explain: Explain): Line[] {
  return Object.entries(explain.notifications).map(([name, { unread }]) =>
    ofNoStream("notification", name, summary.notifications?.[name]?.unread ?? 0, unread),
  );
}

function shownOf<Term extends { unread: number }>(terms: Term[]): Term[] {
  return [...terms].sort((a, b) => b.unread - a.unread).slice(0, MAX_TERMS);
}

function noteOf(size: number, what: string): string {
  const all = size === 1 ? `1 ${what}` : `${size} ${what}s`;
  return size > MAX_TERMS ? `${all}, the first ${MAX_TERMS} by unread` : all;
}

function ofNoStream(kind: string, name: string, polled: number, explained: number): Line {
  return { id: `${kind}.${name}`, kind, name, polled, explained, head: null, mark: null, takenBack: null, note: "" };
}

function term(id: string, kind: string, name: string, explained: number): Line {
  return { id, kind, name, polled: null, explained, head: null, mark: null, takenBack: null, note: "" };
}
