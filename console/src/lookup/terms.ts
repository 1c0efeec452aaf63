// Puts what a poll says next to what the rows say: one line for each number.

import type { UnreadSummary } from "@headmark/client";
import { markOfChannel, markOfGroup } from "../marks.js";
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

/** What the rows say of each number, to be compared. A name that they lack is 0 in them. */
export function explainedOf(summary: UnreadSummary, explain: Explain): string {
  return linesOf(summary, explain)
    .filter(({ polled, explained }) => polled !== null && explained > 0)
    .map(({ id, explained }) => `${id} ${explained}`)
    .join("\n");
}

function counters(summary: UnreadSummary, explain: Explain): Line[] {
  return byName(summary.counters, explain.counters).map(({ name, polled, terms }) => {
    const line = { id: `counters.${name}`, kind: "counter", name, polled: polled?.unread ?? 0 };
    if (!terms) return { ...line, ...onlyPolled(polled?.head) };
    const { head, mark, retracted, unread } = terms;
    const note = retracted === "" ? "" : `taken back: ${retracted}`;
    return { ...line, explained: unread, head, mark, takenBack: sizeOf(retracted), note };
  });
}

function channels(summary: UnreadSummary, explain: Explain): Line[] {
  return byName(summary.broadcasts, explain.broadcasts).map(({ name, polled, terms }) => {
    const line = { id: `broadcasts.${name}`, kind: "broadcast", name, polled: polled?.unread ?? 0 };
    if (!terms) return { ...line, ...onlyPolled(polled?.head) };
    const { head, mark, seq_at_enrolment, gone, unread } = terms;
    const note = seq_at_enrolment > mark ? `came when it was at ${seq_at_enrolment}` : "";
    return { ...line, explained: unread, head, mark: markOfChannel(terms), takenBack: gone, note };
  });
}

function dots(summary: UnreadSummary, explain: Explain): Line[] {
  return byName(summary.dots, explain.dots).map(({ name, polled, terms }) => {
    const line = { id: `dots.${name}`, kind: "dot", name, polled: polled?.lit ? 1 : 0 };
    if (!terms) return { ...line, ...onlyPolled(polled?.head) };
    const { head, mark, lit, after_enrolment } = terms;
    const note = after_enrolment ? (lit ? "lit" : "cleared") : "lit before the user came";
    return { ...line, explained: lit ? 1 : 0, head, mark, takenBack: null, note };
  });
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
    ...shownOf(groups).map((group) => ({
      ...term(`chats.group.${group.group_id}`, "group", group.group_id, group.unread),
      head: group.head,
      mark: markOfGroup(group),
      takenBack: group.gone,
      note: notesOf(group.level, group.mentions, group.unread_from !== undefined),
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
  return byName(summary.notifications, explain.notifications).map(({ name, polled, terms }) => {
    const line = ofNoStream("notification", name, polled?.unread ?? 0, terms?.unread ?? 0);
    return terms ? line : { ...line, ...onlyPolled() };
  });
}

interface Named<Polled, Terms> {
  name: string;
  polled: Polled | undefined;
  terms: Terms | undefined;
}

/**
 * Both sides of each name: first the names of the rows, then those that only the poll has. Every
 * object inherits something called "constructor", and a badge may have that name: hence the maps.
 */
function byName<Polled, Terms>(polled: Record<string, Polled> | undefined, terms: Record<string, Terms>): Named<Polled, Terms>[] {
  const ofPoll = new Map(Object.entries(polled ?? {}));
  const ofRows = new Map(Object.entries(terms));
  const names = new Set([...ofRows.keys(), ...ofPoll.keys()]);
  return [...names].map((name) => ({ name, polled: ofPoll.get(name), terms: ofRows.get(name) }));
}

/** The rows lack this name: they say 0, and the poll alone has a head. */
function onlyPolled(head: number | null = null): Pick<Line, "explained" | "head" | "mark" | "takenBack" | "note"> {
  return { explained: 0, head, mark: null, takenBack: null, note: "only in the poll" };
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
