// The inbox reader's runtime.

import { afterEach, expect, test, vi } from "vitest";
import { InboxReader, type InboxReaderOptions } from "../src/inbox/reader.js";
import { catchReported, Stub, settle, tokenThat } from "./stub.js";

afterEach(() => vi.restoreAllMocks());

function start(options: Partial<InboxReaderOptions> = {}, stub = new Stub()) {
  const { headmark, clock, signals } = stub;
  const stored: number[] = [];
  const events: unknown[] = [];
  const reader = new InboxReader({
    headmark,
    clock,
    signals,
    position: null,
    onItems: (items, position) => {
      stored.push(...items.map((item) => item.seq));
      events.push(position);
    },
    onReset: () => {
      stored.length = 0;
    },
    onGap: (gap) => events.push(gap),
    ...options,
  });
  reader.start();
  return { stub, reader, stored, events };
}

function page(seqs: number[], head: number, epoch = "i1"): object {
  const items = seqs.map((seq) => ({ seq, sender_id: "7", content: "Hi", sent_at: "2026-01-31T09:30:00.000Z" }));
  const next_after = seqs.at(-1) ?? head;
  return { items, epoch, head, next_after, has_more: next_after < head };
}

test("it reads pages, hands them over, and puts the device's cursor", async () => {
  const { stub, reader, stored, events } = start({ device: "phone", limit: 2 });
  const first = await stub.last();
  expect(first.url).toBe("/v1/users/me/inbox?limit=2");
  await first.answer(200, page([1, 2], 3));
  expect(stored).toEqual([1, 2]);
  expect(events).toEqual([{ epoch: "i1", after: 2 }]);
  const [cursor, second] = [stub.newest("PUT"), stub.newest("GET")];
  expect([cursor?.method, cursor?.url, cursor?.body]).toEqual(["PUT", "/v1/users/me/devices/phone/cursor", '{"seq":2}']);
  expect(second?.url).toBe("/v1/users/me/inbox?limit=2&after=2&epoch=i1&wait=30");
  await second?.answer(200, page([3], 3));
  expect(stored).toEqual([1, 2, 3]);
  expect(reader.status).toBe("live");
});

test("no page is asked for while the app stores one; a failed transaction brings the same rows again", async () => {
  const reported = catchReported();
  const results: ((fails: boolean) => void)[] = [];
  const batches: number[][] = [];
  const { stub } = start({
    onItems: (items) => {
      batches.push(items.map((item) => item.seq));
      return new Promise((resolve, reject) => results.push((fails) => (fails ? reject(new Error("disk full")) : resolve())));
    },
  });
  await (await stub.last()).answer(200, page([1, 2], 3));
  await stub.pass(60_000);
  expect(stub.requests.length).toBe(1);
  results[0]?.(true);
  await settle();
  await stub.pass(1_000);
  expect(batches).toEqual([
    [1, 2],
    [1, 2],
  ]);
  expect(reported).toEqual([new Error("disk full")]);
  results[1]?.(false);
  await settle();
  expect(stub.requests.at(-1)?.url).toBe("/v1/users/me/inbox?limit=100&after=2&epoch=i1&wait=30");
});

test("what the app does to its items and position does not change those that come again", async () => {
  catchReported();
  const batches: unknown[] = [];
  const { stub } = start({
    onItems: (items, position) => {
      batches.push([items.splice(0).map((item) => item.seq), position.after]);
      position.after = 0;
      if (batches.length === 1) throw new Error("disk full");
    },
  });
  await (await stub.last()).answer(200, page([1, 2], 3));
  await stub.pass(1_000);
  expect(batches).toEqual([
    [[1, 2], 2],
    [[1, 2], 2],
  ]);
  expect((await stub.last()).url).toBe("/v1/users/me/inbox?limit=100&after=2&epoch=i1&wait=30");
});

const END = { epoch: "i1", next_after: 1, has_more: false };

test.each([
  {},
  { items: [] },
  { items: [], epoch: "i1" },
  { ...END, items: {} },
  { ...END, items: [], next_after: "1" },
  { ...END, items: [], next_after: true },
  { ...END, items: [null] },
  { ...END, items: [[]] },
  { ...END, items: [{ seq: "1" }] },
])("the JSON of something else is an outage: %j", async (body) => {
  const statuses: unknown[] = [];
  const { stub, stored } = start({ onStatus: (status, trouble) => statuses.push([status, trouble?.code]) });
  await (await stub.last()).answer(200, body);
  await stub.pass(1_000);
  await (await stub.last()).answer(200, page([1, 2], 2));
  expect(stored).toEqual([1, 2]);
  expect(statuses).toEqual([
    ["reading", undefined],
    ["retrying", "unexpected_answer"],
    ["reading", undefined],
    ["live", undefined],
  ]);
});

test("a reset is told before rows come again; a gap is told, and what is behind it is asked for at once", async () => {
  const { stub, stored, events } = start({ position: { epoch: "i0", after: 9 } });
  stored.push(1, 2, 3);
  const reset = { type: "/problems/inbox_reset", status: 410, title: "T", detail: "D", code: "inbox_reset" };
  await (await stub.last()).answer(410, reset);
  expect(stored).toEqual([]);
  await stub.pass(1_000);
  const again = await stub.last();
  expect(again.url).toBe("/v1/users/me/inbox?limit=100");
  await again.answer(200, page([1], 1));
  await stub.pass(1_000);
  const expired = {
    type: "/problems/cursor_expired",
    status: 410,
    title: "T",
    detail: "D",
    code: "cursor_expired",
    earliest_seq: 5,
  };
  await (await stub.last()).answer(410, expired);
  expect(events.slice(-2)).toEqual([
    { after: 1, earliestSeq: 5 },
    { epoch: "i1", after: 4 },
  ]);
  await stub.pass(1_000);
  expect(stub.requests.at(-1)?.url).toBe("/v1/users/me/inbox?limit=100&after=4&epoch=i1");
});

test("stop ends the request and puts the cursor a last time", async () => {
  const statuses: string[] = [];
  const { stub, reader } = start({
    device: "phone",
    position: { epoch: "i1", after: 9 },
    onStatus: (status) => statuses.push(status),
  });
  await settle();
  const [cursor, fetch] = [stub.newest("PUT"), stub.newest("GET")];
  await cursor?.fail();
  void reader.stop();
  await settle();
  expect(fetch?.isAborted).toBe(true);
  expect(stub.isWatched).toBe(false);
  expect(stub.requests.at(-1)?.body).toBe('{"seq":9}');
  expect(statuses).toEqual(["reading", "idle"]);
});

test("a stop is over when the items are stored and the cursor is put", async () => {
  let store = () => {};
  const { stub, reader } = start({ device: "phone", onItems: () => new Promise((resolve) => (store = resolve)) });
  await (await stub.last()).answer(200, page([1, 2], 3));
  let isOver = false;
  const over = reader.stop().then(() => (isOver = true));
  await settle();
  expect(isOver).toBe(false);
  store();
  await settle();
  expect(isOver).toBe(false);
  await stub.newest("PUT")?.answer(200, {});
  await over;
  expect(stub.newest("PUT")?.body).toBe('{"seq":2}');
  expect(stub.requests.length).toBe(2);
});

test("a stop is over when the last cursor is put, however many were in flight before", async () => {
  const results: (() => void)[] = [];
  const { stub, reader } = start({ device: "phone", onItems: () => new Promise((resolve) => results.push(resolve)) });
  const store = async (delivery: number) => {
    results[delivery]?.();
    await settle();
  };
  await (await stub.last()).answer(200, page([1], 9));
  await store(0);
  await stub.newest("GET")?.answer(200, page([2], 9));
  await store(1);
  await stub.newest("GET")?.answer(200, page([3], 9));
  let isOver = false;
  const over = reader.stop().then(() => (isOver = true));
  // The next one goes while items are being stored, and one more after them.
  await stub.newest("PUT")?.answer(200, {});
  await store(2);
  await stub.newest("PUT")?.answer(200, {});
  expect(isOver).toBe(false);
  await stub.newest("PUT")?.answer(200, {});
  await over;
  const puts = stub.requests.filter(({ method }) => method === "PUT");
  expect(puts.map(({ body }) => body)).toEqual(['{"seq":1}', '{"seq":2}', '{"seq":3}']);
});

test("a stop as soon as items come is over when they are stored and the cursor is put", async () => {
  let store = () => {};
  let isOver = false;
  const { stub, reader } = start({
    device: "phone",
    onItems: () => {
      void reader.stop().then(() => (isOver = true));
      return new Promise((resolve) => (store = resolve));
    },
  });
  await (await stub.last()).answer(200, page([1, 2], 3));
  expect(isOver).toBe(false);
  store();
  await settle();
  expect(stub.newest("PUT")?.body).toBe('{"seq":2}');
  expect(isOver).toBe(false);
  await stub.newest("PUT")?.answer(200, {});
  expect(isOver).toBe(true);
});

test("a stop is over, too, when the reader was started again meanwhile", async () => {
  let store = () => {};
  const { stub, reader } = start({ onItems: () => new Promise((resolve) => (store = resolve)) });
  await (await stub.last()).answer(200, page([1, 2], 3));
  let isOver = false;
  void reader.stop().then(() => (isOver = true));
  reader.start();
  store();
  await settle();
  expect(isOver).toBe(true);
  expect((await stub.last()).url).toBe("/v1/users/me/inbox?limit=100&after=2&epoch=i1&wait=30");
});

test("errors that need the app, and going on after them", async () => {
  const { stub, reader } = start();
  await (await stub.last()).answer(401, {
    type: "/problems/unauthorized",
    status: 401,
    title: "T",
    detail: "D",
    code: "unauthorized",
  });
  expect(reader.status).toBe("failed");
  await stub.pass(60_000);
  expect(stub.requests.length).toBe(1);
  reader.refresh();
  await (await stub.last()).answer(200, page([], 0));
  expect(reader.status).toBe("live");
});

test("a token function that fails is reported once, for the pages and the cursor together", async () => {
  const reported = catchReported();
  const token: { error: Error | null } = { error: null };
  const stub = new Stub();
  const { reader } = start({ device: "phone", headmark: stub.client({ token: tokenThat(token) }) }, stub);
  const signedOut = new Error("signed out");
  const first = await stub.last();
  token.error = signedOut;
  await first.answer(200, page([1], 1));
  await stub.pass(200_000);
  expect(reader.status).toBe("retrying");
  expect(reported).toEqual([signedOut]);
  token.error = null;
  await stub.pass(60_000);
  await stub.newest("GET")?.answer(200, page([], 1));
  expect(reader.status).toBe("live");
});
