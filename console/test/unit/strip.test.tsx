// The picture of a stream, and the streams that the rows of a phone show.
// @vitest-environment happy-dom

import { render } from "preact";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Session } from "../../src/session.js";
import type { Explain } from "../../src/terms.js";
import { rowsOf } from "../../src/try/rows.js";
import { World } from "../../src/try/world.js";
import { type Stream, Strip } from "../../src/ui/strip.js";

describe("a strip", () => {
  let body: HTMLElement;
  beforeEach(() => {
    body = document.createElement("div");
  });
  afterEach(() => render(null, body));

  /** Each cell with the state in which it is drawn. */
  function drawn(stream: Stream): string {
    render(<Strip stream={stream} name="News" />, body);
    const cells = [...body.querySelectorAll(".cell")];
    return cells.map((cell) => `${cell.textContent} ${cell.className.replace("cell ", "")}`).join(", ");
  }
  const ends = () => body.querySelector(".ends")?.textContent;
  const label = () => body.querySelector(".strip")?.getAttribute("aria-label");

  it("shows what is read, unread and taken back", () => {
    expect(drawn({ head: 4, mark: 2, retracted: "4" })).toBe("1 read, 2 read, 3 unread, 4 gone");
    expect([ends(), label()]).toEqual(["mark 2 · head 4", "News: mark 2, head 4, 1 gone"]);
    expect(drawn({ head: 0, mark: 0 })).toBe("– none");
  });

  it("shows nothing as unread where everything above the mark is gone", () => {
    expect(drawn({ head: 3, mark: 1, gone: 2 })).toBe("1 read, 2 gone, 3 gone");
    expect([ends(), label()]).toEqual(["mark 1 · head 3 · 2 gone", "News: mark 1, head 3, 2 gone"]);
    expect(drawn({ head: 9, mark: 0, gone: 9 })).toMatch(/^… gone, 2 gone, .*9 gone$/);
    expect(drawn({ head: 9, mark: 1, gone: 8 })).toMatch(/^… read, 2 gone, .*9 gone$/);
  });

  it("says how many are gone where nobody says which", () => {
    expect(drawn({ head: 3, mark: 1, gone: 1 })).toBe("1 read, 2 unread, 3 unread");
    expect([ends(), label()]).toEqual(["mark 1 · head 3 · 1 gone", "News: mark 1, head 3, 1 gone"]);
    expect(drawn({ head: 1, mark: 1, gone: 0 })).toBe("1 read");
    expect([ends(), label()]).toEqual(["mark 1 · head 1", "News: mark 1, head 1"]);
  });
});

describe("the rows of a phone", () => {
  const group = { group_id: "7", head: 9, read_seq: 9, gone: 0, unread: 0, mentions: 0, level: "all" } as const;
  const explain: Explain = {
    user_id: "7",
    revision: 1,
    not_in_total: [],
    total: 0,
    broadcast_head: 4,
    counters: { like: { head: 4, mark: 2, retracted: "4", unread: 1 } },
    broadcasts: { news: { head: 4, mark: 0, seq_at_enrolment: 1, gone: 3, unread: 0 } },
    dots: {},
    feed: { unread: 1, changed_at: 1, creators: [{ user_id: "8", head: 5, mark: 2, gone: 2, unread: 1 }] },
    chats: { unread: 0, groups: [group], directs: [] },
    notifications: {},
  };
  const polled = { user_id: "7", epoch: "e", degraded: false, counters: { like: { unread: 1, head: 4 } } };

  /** The streams of the row. */
  function streams(id: string, explained: Explain | null, summary = {}): Stream[] | undefined {
    const world = new World(new Session(), "7,8,9");
    const phone = world.phone("Ann");
    phone.view.set({ summary: { ...polled, ...summary }, status: "live", trouble: null });
    phone.streams.set(explained);
    return rowsOf(world, phone)
      .find((row) => row.id === id)
      ?.streams.map(({ stream }) => stream);
  }

  it("tell how many positions are gone", () => {
    expect(streams("counters.like", explain)).toMatchObject([{ head: 4, mark: 2, retracted: "4" }]);
    expect(streams("broadcasts.news", explain)).toEqual([{ head: 4, mark: 1, gone: 3 }]);
    expect(streams("feed", explain)).toEqual([{ head: 5, mark: 2, gone: 2 }]);
  });

  it("show a group that is marked unread from where it is unread again", () => {
    const chats = (term: Partial<Explain["chats"]["groups"][number]>) => ({
      ...explain,
      chats: { unread: 0, groups: [{ ...group, ...term }], directs: [] },
    });
    expect(streams("chats", chats({}))).toEqual([{ head: 9, mark: 9, gone: 0 }]);
    expect(streams("chats", chats({ unread_from: 7, gone: 1, unread: 2 }))).toEqual([{ head: 9, mark: 6, gone: 1 }]);
    expect(streams("chats", chats({ unread_from: 1, gone: 0, unread: 9 }))).toEqual([{ head: 9, mark: 0, gone: 0 }]);
  });

  it("show no stream before its mark is known", () => {
    const summary = {
      counters: { like: { unread: 0, head: 4 }, constructor: { unread: 0, head: 3 } },
      broadcasts: { news: { unread: 0, head: 4 }, constructor: { unread: 0, head: 3 } },
    };
    for (const id of ["counters.like", "broadcasts.news"]) expect(streams(id, null, summary), id).toEqual([]);
    for (const id of ["counters.constructor", "broadcasts.constructor"]) {
      expect(streams(id, explain, summary), id).toEqual([{ head: 0, mark: 0 }]);
    }
  });
});
