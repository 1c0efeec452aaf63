import { describe, expect, it } from "vitest";
import { differencesOf, differs, explainedOf, linesOf, MAX_TERMS } from "../../src/lookup/terms.js";
import type { Explain } from "../../src/terms.js";

const explain: Explain = {
  user_id: "1",
  revision: 7,
  not_in_total: [],
  total: 3,
  broadcast_head: 9,
  counters: { like: { head: 9, mark: 4, retracted: "5 7-8", unread: 2 } },
  broadcasts: { news: { head: 9, mark: 2, seq_at_enrolment: 8, gone: 0, unread: 1 } },
  dots: { mall: { head: 1, mark: 0, lit_at: "2026-01-31T09:30:00.123Z", after_enrolment: true, lit: true } },
  feed: {
    unread: 50,
    changed_at: 1,
    creators: Array.from({ length: 5_000 }, (_, at) => ({
      user_id: String(at + 1),
      head: 1,
      mark: at < 50 ? 0 : 1,
      gone: 0,
      unread: at < 50 ? 1 : 0,
    })).reverse(),
  },
  chats: { unread: 0, groups: [], directs: [] },
  notifications: { notice: { unread: 1, unseen: 0 } },
};

const summary = {
  user_id: "1",
  epoch: "e",
  degraded: false,
  counters: { like: { unread: 2, head: 9 } },
  broadcasts: { news: { unread: 0, head: 9 } },
  dots: { mall: { lit: true, head: 1 } },
  feed: { unread: 50 },
  notifications: { notice: { unread: 1, unseen: 0 } },
};

it("each number of the poll stands beside that of the rows", () => {
  const lines = linesOf(summary, explain);
  expect(lines.filter(differs).map(({ id }) => id)).toEqual(["broadcasts.news"]);
  expect(lines[0]).toMatchObject({ polled: 2, explained: 2, head: 9, mark: 4, takenBack: 3 });
  expect(lines[1]).toMatchObject({ polled: 0, explained: 1, mark: 8 });
});

it("of thousands of creators, those with unread posts are shown", () => {
  const terms = linesOf(summary, explain).filter(({ kind }) => kind === "posts of");
  expect(terms).toHaveLength(MAX_TERMS);
  expect(terms.every(({ explained }) => explained === 1)).toBe(true);
  expect(linesOf(summary, explain).find(({ id }) => id === "feed.feed")?.note).toBe(
    `5000 creators, the first ${MAX_TERMS} by unread`,
  );
});

describe("a number that only the poll has", () => {
  const more = {
    ...summary,
    total: 3,
    counters: { ...summary.counters, ghost: { unread: 4, head: 6 } },
    broadcasts: { news: { unread: 1, head: 9 }, old: { unread: 2, head: 5 } },
    dots: { ...summary.dots, door: { lit: true, head: 8 } },
    notifications: { ...summary.notifications, alarm: { unread: 5, unseen: 0 } },
  };

  it("differs from the rows, and comes after theirs", () => {
    const lines = linesOf(more, explain);
    expect(lines.filter(differs)).toMatchObject([
      { id: "counters.ghost", polled: 4, explained: 0, head: 6, mark: null, takenBack: null, note: "only in the poll" },
      { id: "broadcasts.old", polled: 2, explained: 0, head: 5, mark: null },
      { id: "dots.door", polled: 1, explained: 0, head: 8, mark: null },
      { id: "notification.alarm", polled: 5, explained: 0, head: null, mark: null, note: "only in the poll" },
    ]);
    expect(lines.map(({ id }) => id).slice(0, 4)).toEqual([
      "counters.like",
      "counters.ghost",
      "broadcasts.news",
      "broadcasts.old",
    ]);
    expect(differencesOf(more, explain)).toBe(4);
  });

  it("agrees where it is 0", () => {
    const read = { ...more, counters: { ...more.counters, ghost: { unread: 0, head: 6 } } };
    expect(differencesOf(read, explain)).toBe(3);
  });

  it("changes nothing in what the rows say", () => {
    expect(explainedOf(more, explain)).toBe(explainedOf(summary, explain));
  });

  it.each(["constructor", "__proto__"])("differs, also with the name %s", (name) => {
    const only = <Value>(value: Value): Record<string, Value> => ({ [name]: value });
    const named = {
      ...summary,
      counters: only({ unread: 4, head: 6 }),
      broadcasts: only({ unread: 2, head: 5 }),
      dots: only({ lit: true, head: 8 }),
      notifications: only({ unread: 5, unseen: 0 }),
    };
    const ids = [`counters.${name}`, `broadcasts.${name}`, `dots.${name}`, `notification.${name}`];
    const own = linesOf(named, explain).filter((line) => line.name === name);
    expect(own.map(({ id, polled, explained }) => [id, polled, explained])).toEqual(
      ids.map((id, at) => [id, [4, 2, 1, 5][at], 0]),
    );
    const explained = { ...explain, counters: only({ head: 6, mark: 2, retracted: "", unread: 4 }) };
    expect(linesOf(summary, explained)[0]).toMatchObject({ name, polled: 0, explained: 4, mark: 2 });
  });
});
