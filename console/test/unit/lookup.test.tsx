// What the parts of Look up share, without a server.
// @vitest-environment happy-dom

import type { Headmark } from "@headmark/client";
import { render } from "preact";
import { useCallback } from "preact/hooks";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Page, usePages } from "../../src/lookup/load.js";
import { PagedTable } from "../../src/lookup/parts.js";
import { RelationsSection } from "../../src/lookup/relations.js";
import { SummarySection } from "../../src/lookup/summary.js";

let body: HTMLElement;
/** The requests that nobody has answered yet, by what they ask for. */
let open: Map<string, { resolve(answer: unknown): void; reject(error: Error): void }>;

beforeEach(() => {
  open = new Map();
  body = document.createElement("div");
  document.body.append(body);
});

afterEach(() => {
  render(null, body);
  body.remove();
});

function asked<Answer>(what: string): Promise<Answer> {
  return new Promise((resolve, reject) => open.set(what, { resolve: resolve as (answer: unknown) => void, reject }));
}

function answer(what: string, value: unknown): void {
  const settle = open.get(what);
  open.delete(what);
  if (value instanceof Error) settle?.reject(value);
  else settle?.resolve(value);
}

/** What was answered is shown. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 50));

const button = () => body.querySelector("button");

function List() {
  const pages = usePages(useCallback((cursor: string | null) => asked<Page<string>>(cursor ?? "first"), []));
  const columns = [{ name: "Name", cell: (name: string) => name }];
  return <PagedTable pages={pages} caption="List" columns={columns} keyOf={(name) => name} empty="Nothing." />;
}

it("who reads on by keyboard keeps the focus, to the end of the list", async () => {
  render(<List />, body);
  await expect.poll(() => open.has("first")).toBe(true);
  answer("first", new Error("The server does not answer."));
  await expect.poll(() => button()?.textContent).toBe("Try again");
  button()?.focus();
  /** Presses the button, and it stays there while the answer is on its way. */
  const press = async (cursor: string) => {
    const pressed = button();
    pressed?.click();
    await expect.poll(() => button()?.textContent).toBe("Loading…");
    pressed?.click();
    expect([button() === pressed, pressed?.getAttribute("aria-disabled")]).toEqual([true, "true"]);
    expect(document.activeElement).toBe(pressed);
    expect([...open.keys()], "it is pressed once").toEqual([cursor]);
  };
  await press("first");
  answer("first", { items: ["a"], next_cursor: "second" });
  await expect.poll(() => button()?.textContent).toBe("Show more");
  expect(document.activeElement).toBe(button());
  await press("second");
  answer("second", { items: ["b"], next_cursor: null });
  await expect.poll(button).toBeNull();
  expect(document.activeElement?.textContent).toBe("This is all.");
});

it("a list of one page has no end to speak of", async () => {
  render(<List />, body);
  await expect.poll(() => open.has("first")).toBe(true);
  answer("first", { items: ["a"] });
  await expect.poll(() => body.querySelector("td")?.textContent).toBe("a");
  expect(body.textContent).not.toContain("This is all.");
});

it("of two comparisons the later one is shown, whichever answer comes first", async () => {
  const get = (path: string, { params }: { params: { path: { user: string }; query?: { ids?: string } } }) =>
    asked(`${path} ${params.path.user} ${params.query?.ids}`);
  render(<RelationsSection headmark={{ GET: get } as unknown as Headmark} user="1" />, body);
  const input = body.querySelector<HTMLInputElement>("#other");
  const compareWith = async (other: string) => {
    if (input) input.value = other;
    input?.form?.dispatchEvent(new Event("submit", { cancelable: true }));
    await expect.poll(() => open.has(`/v1/users/{user}/relations 1 ${other}`)).toBe(true);
  };
  const relation = (user: string, ids: string, value: object) =>
    answer(`/v1/users/{user}/relations ${user} ${ids}`, value instanceof Error ? value : { data: { items: [value] } });
  const said = () => body.querySelector(".said")?.textContent;
  await compareWith("2");
  await compareWith("3");
  relation("1", "3", { user_id: "3", following: true });
  relation("3", "1", { user_id: "1", following: false });
  await expect.poll(said).toBe("1 follows 3. 3 does not follow 1.");
  relation("1", "2", { user_id: "2", following: false });
  relation("2", "1", { user_id: "1", following: false });
  await settled();
  expect(said()).toBe("1 follows 3. 3 does not follow 1.");
  await compareWith("4");
  await compareWith("3");
  relation("1", "4", new Error("too late"));
  await settled();
  expect(said()).toBe("1 follows 3. 3 does not follow 1.");
});

describe("a poll and its explanation", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  interface Answered {
    polled: number;
    explained: number;
    /** How many changes of the user come between the two answers. */
    changes?: number;
  }

  /** The last answers come again and again. Returns how many polls were sent. */
  function lookUp(answers: Answered[]): () => number {
    let polls = 0;
    const current = () => answers[Math.min(polls, answers.length) - 1] as Answered;
    const POST = () => {
      polls += 1;
      const { polled } = current();
      const summary = { user_id: "1", epoch: "e", degraded: false, revision: 7, total: polled, chats: { unread: polled } };
      return Promise.resolve({ data: { items: [summary] } });
    };
    const GET = () => {
      const { explained, changes = 0 } = current();
      const nothing = {
        counters: {},
        broadcasts: {},
        dots: {},
        feed: { unread: 0, changed_at: 0, creators: [] },
        notifications: {},
      };
      const chats = { unread: explained, groups: [], directs: [] };
      return Promise.resolve({ data: { ...nothing, user_id: "1", revision: 7 + changes, total: explained, chats } });
    };
    render(<SummarySection headmark={{ POST, GET } as unknown as Headmark} user="1" />, body);
    return () => polls;
  }

  const alert = () => body.querySelector("[role=alert]");

  it("agree once the node that polls has seen the heads, and no difference is announced before", async () => {
    lookUp([
      { polled: 1, explained: 2 },
      { polled: 1, explained: 2 },
      { polled: 1, explained: 2 },
      { polled: 2, explained: 2 },
    ]);
    for (let tenth = 0; tenth < 30; tenth += 1) {
      await vi.advanceTimersByTimeAsync(100);
      expect(alert()).toBeNull();
    }
    expect(body.textContent).toContain("The poll and the rows agree.");
  });

  it("differ for longer than heads may be old: it is announced", async () => {
    const polls = lookUp([{ polled: 1, explained: 2 }]);
    await vi.advanceTimersByTimeAsync(1_800);
    expect(alert()).toBeNull();
    await vi.advanceTimersByTimeAsync(1_200);
    expect(alert()?.textContent).toContain("2 numbers differ from the rows.");
    const sent = polls();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(polls(), "nobody looks again").toBe(sent);
  });

  it("agree at once, without a pause", async () => {
    const polls = lookUp([{ polled: 2, explained: 2 }]);
    await vi.advanceTimersByTimeAsync(100);
    expect(body.textContent).toContain("The poll and the rows agree.");
    expect(polls()).toBe(1);
  });

  it("follow each other in a busy group: no difference is announced", async () => {
    lookUp([
      { polled: 1, explained: 2 },
      { polled: 2, explained: 3 },
      { polled: 5, explained: 9 },
      { polled: 9, explained: 14 },
    ]);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(body.textContent).toContain("change all the time");
    expect(alert()).toBeNull();
  });

  it("are of other states each time: no difference is announced", async () => {
    lookUp([{ polled: 1, explained: 2, changes: 1 }]);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(body.textContent).toContain("change all the time");
    expect(alert()).toBeNull();
  });
});
