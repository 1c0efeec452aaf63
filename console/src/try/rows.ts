// The rows of a phone: those of the guide always, whatever else the user has as well.

import type { UnreadSummary } from "@headmark/client";
import { markOfChannel, markOfGroup } from "../marks.js";
import type { Explain } from "../terms.js";
import type { Stream } from "../ui/strip.js";
import type { Phone } from "./phone.js";
import { LIKES, NEWS, type World } from "./world.js";

export interface Row {
  id: string;
  label: string;
  /** What kind of stream it is. */
  note: string;
  unread: number;
  /** Of dots. */
  lit?: boolean;
  streams: { name: string; stream: Stream }[];
  /** The user looks at it: what is shown is read. */
  open(): Promise<string>;
}

/** The pictures of a long list would be longer than the phone. */
const MAX_STREAMS = 3;

export function rowsOf(world: World, phone: Phone): Row[] {
  const { summary } = phone.view.value;
  const explain = phone.streams.value;
  const counters = withFirst(LIKES, summary?.counters);
  const channels = withFirst(NEWS, summary?.broadcasts);
  return [
    ...counters.map((name) => counterRow(phone, name, summary, explain)),
    ...channels.map((name) => channelRow(phone, name, summary, explain)),
    feedRow(world, phone, summary, explain),
    chatsRow(world, phone, summary, explain),
    ...Object.keys(summary?.dots ?? {}).map((name) => dotRow(phone, name, summary)),
  ];
}

function counterRow(phone: Phone, name: string, summary: UnreadSummary | null, explain: Explain | null): Row {
  const unread = summary?.counters?.[name]?.unread ?? 0;
  return {
    id: `counters.${name}`,
    label: name === LIKES ? "Likes" : name,
    note: "own head, own mark",
    unread,
    streams: streamOf(explain?.counters, name, (terms) => terms),
    open: () => reset(phone, "counters", name, unread),
  };
}

function channelRow(phone: Phone, name: string, summary: UnreadSummary | null, explain: Explain | null): Row {
  const unread = summary?.broadcasts?.[name]?.unread ?? 0;
  return {
    id: `broadcasts.${name}`,
    label: name === NEWS ? "News" : name,
    note: "shared head, own mark",
    unread,
    streams: streamOf(explain?.broadcasts, name, (terms) => ({ head: terms.head, mark: markOfChannel(terms), gone: terms.gone })),
    open: () => reset(phone, "broadcasts", name, unread),
  };
}

function feedRow(world: World, phone: Phone, summary: UnreadSummary | null, explain: Explain | null): Row {
  const creators = explain?.feed.creators ?? [];
  return {
    id: "feed",
    label: "Feed",
    note: creators.length === 0 ? "follows nobody" : "heads of creators, own marks",
    unread: summary?.feed?.unread ?? 0,
    streams: creators
      .slice(0, MAX_STREAMS)
      .map(({ user_id, head, mark, gone }) => ({ name: world.nameOf(user_id), stream: { head, mark, gone } })),
    open: () => world.openFeed(phone),
  };
}

function chatsRow(world: World, phone: Phone, summary: UnreadSummary | null, explain: Explain | null): Row {
  const groups = explain?.chats.groups ?? [];
  const { directs = 0 } = summary?.chats ?? {};
  const fromPeople = directs === 1 ? "from one person" : `from ${directs} people`;
  return {
    id: "chats",
    label: "Chats",
    note: directs > 0 ? fromPeople : "groups and directs",
    unread: summary?.chats?.unread ?? 0,
    streams: groups
      .slice(0, MAX_STREAMS)
      .map((group) => ({ name: "group", stream: { head: group.head, mark: markOfGroup(group), gone: group.gone } })),
    open: () => world.openChats(phone),
  };
}

function dotRow(phone: Phone, name: string, summary: UnreadSummary | null): Row {
  const lit = summary?.dots?.[name]?.lit ?? false;
  return {
    id: `dots.${name}`,
    label: name,
    note: "dot",
    unread: lit ? 1 : 0,
    lit,
    streams: [],
    open: () => reset(phone, "dots", name, lit ? 1 : 0),
  };
}

/**
 * The stream of this name, and nothing before its mark is known: all of it would look unread. A
 * badge may have the name "constructor", which every object inherits.
 */
function streamOf<Terms>(all: Record<string, Terms> | undefined, name: string, draw: (terms: Terms) => Stream): Row["streams"] {
  if (!all) return [];
  const terms = Object.hasOwn(all, name) ? all[name] : undefined;
  return [{ name: "", stream: terms ? draw(terms) : { head: 0, mark: 0 } }];
}

function reset(phone: Phone, kind: "counters" | "broadcasts" | "dots", name: string, unread: number): Promise<string> {
  const { name: who } = phone.person;
  if (unread === 0) return Promise.resolve(`${who} has read everything here.`);
  phone.reset(kind, name);
  return Promise.resolve(`${who} opened ${name}: read up to the head that the phone shows.`);
}

function withFirst(first: string, badges: Record<string, unknown> | undefined): string[] {
  return [first, ...Object.keys(badges ?? {}).filter((name) => name !== first)];
}
