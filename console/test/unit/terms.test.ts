import { expect, it } from "vitest";
import { differs, linesOf, MAX_TERMS } from "../../src/lookup/terms.js";
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
