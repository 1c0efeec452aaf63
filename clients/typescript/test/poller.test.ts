// The poller's runtime: requests, timers, subscriptions.

import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { UnreadPoller } from "../src/poller/poller.js";
import type { UnreadView } from "../src/poller/types.js";
import { catchReported, Stub, settle, summary, tokenThat } from "./stub.js";

afterEach(() => vi.restoreAllMocks());

function start(options: Partial<ConstructorParameters<typeof UnreadPoller>[0]> = {}, stub = new Stub()) {
  const { headmark, clock, signals } = stub;
  const poller = new UnreadPoller({ headmark, clock, signals, ...options });
  const views: UnreadView[] = [];
  const stop = poller.subscribe((view) => views.push(view));
  return { stub, poller, views, stop };
}

test("it polls, shows, waits with the tag and keeps one view until something changes", async () => {
  const { stub, poller, views } = start({ query: { cap: 99 } });
  const first = await stub.last();
  expect([first.method, first.url]).toEqual(["GET", "/v1/users/me/badges?cap=99"]);
  expect(first.headers.get("if-none-match")).toBeNull();
  await first.answer(200, summary(1, 3), { etag: 'W/"a"', "x-poll-interval": "30" });
  expect(poller.view).toMatchObject({ status: "live", summary: { total: 3 } });
  const { view } = poller;

  await stub.pass(1_000);
  const second = await stub.last();
  expect(second.url).toBe("/v1/users/me/badges?cap=99&wait=30");
  expect(second.headers.get("if-none-match")).toBe('W/"a"');
  await stub.pass(30_000);
  await second.answer(304);
  expect(poller.view).toBe(view);
  expect(stub.requests.length).toBe(3);
  expect(views.map((shown) => shown.status)).toEqual(["loading", "live"]);
});

test("it polls while somebody listens, and goes on when one listener takes over from another", async () => {
  const { stub, poller, stop } = start();
  const first = await stub.last();
  stop();
  const stopOther = poller.subscribe(() => {});
  await settle();
  expect(first.isAborted).toBe(false);
  stopOther();
  await settle();
  expect(first.isAborted).toBe(true);
  expect(stub.isWatched).toBe(false);
  expect(poller.view.status).toBe("idle");
  poller.subscribe(() => {});
  await stub.pass(1_000);
  expect(stub.requests.length).toBe(2);
});

test("hidden and offline end the request; coming back asks again", async () => {
  const { stub, poller } = start();
  const first = await stub.last();
  await stub.signal("hidden");
  expect(first.isAborted).toBe(true);
  expect(poller.view.status).toBe("paused");
  await stub.pass(60_000);
  expect(stub.requests.length).toBe(1);
  await stub.signal("visible");
  expect(stub.requests.length).toBe(2);
});

test("no answer, problems and pages of proxies are tried again", async () => {
  const { stub, poller } = start();
  await (await stub.last()).fail();
  expect(poller.view).toMatchObject({ status: "retrying", trouble: { status: 0, code: "no_answer" } });
  await stub.pass(1_000);
  const body = { type: "/problems/overloaded", status: 503, title: "T", detail: "D", code: "overloaded" };
  await (await stub.last()).answer(503, body, { "retry-after": "7" });
  expect(poller.view.trouble).toEqual({ status: 503, code: "overloaded" });
  await stub.pass(6_999);
  expect(stub.requests.length).toBe(2);
  await stub.pass(1);
  await (await stub.last()).answer(200, { hello: "Wi-Fi" });
  expect(poller.view.trouble).toEqual({ status: 200, code: "unexpected_answer" });
  await stub.pass(4_000);
  await (await stub.last()).answer(200, summary(1, 3));
  expect(poller.view.status).toBe("live");
});

test.each([{}, { epoch: "e" }, { epoch: 5, degraded: false }])("the JSON of something else is an outage: %j", async (body) => {
  const { stub, poller } = start();
  await (await stub.last()).answer(200, body);
  const trouble = { status: 200, code: "unexpected_answer" };
  expect(poller.view).toEqual({ summary: null, status: "retrying", trouble });
  await stub.pass(1_000);
  await (await stub.last()).answer(200, summary(1, 3));
  expect(poller.view.status).toBe("live");
});

test("so is what answers a reset", async () => {
  const { stub, poller } = start();
  await (await stub.last()).answer(200, summary(1, 3));
  poller.reset("counters", "mention");
  await (await stub.last()).answer(200, { revision: 2 });
  await stub.pass(1_000);
  expect(stub.requests.map(({ method }) => method)).toEqual(["GET", "POST", "POST"]);
  await (await stub.last()).answer(200, { badge: "mention", unread: 0, head: 3, revision: 2 });
  expect(poller.view.summary).toMatchObject({ revision: 2, counters: { mention: { unread: 0, head: 3 } } });
});

test("a poll that hangs ends after its time, and its wait", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { stub, poller } = start({ timeoutMs: 5_000 });
  const hangs = async (ms: number) => {
    const request = await stub.last();
    vi.advanceTimersByTime(ms - 1);
    expect(request.isAborted).toBe(false);
    vi.advanceTimersByTime(1);
    await settle();
    expect(request.isAborted).toBe(true);
    expect(poller.view.status).toBe("retrying");
  };
  await hangs(5_000);
  await stub.pass(1_000);
  await (await stub.last()).answer(200, summary(1, 3), { etag: 'W/"a"' });
  await stub.pass(1_000);
  expect((await stub.last()).url).toContain("wait=30");
  await hangs(35_000);
});

test.each([
  ["counters", "mention", "/v1/users/me/badges/mention/reset", { badge: "mention", unread: 0, head: 3, revision: 2 }],
  ["broadcasts", "system", "/v1/users/me/broadcasts/system/read", { channel: "system", unread: 0, head: 3, revision: 2 }],
  ["dots", "mall", "/v1/users/me/dots/mall/clear", { dot: "mall", lit: false, head: 3, revision: 2 }],
] as const)("a reset of %s", async (kind, name, url, answer) => {
  const { stub, poller } = start();
  const shown = {
    ...summary(1, 3),
    broadcasts: { system: { unread: 2, head: 3 } },
    dots: { mall: { lit: true, head: 3 } },
    total: 5,
  };
  await (await stub.last()).answer(200, shown, { etag: '"a"' });
  poller.reset(kind, name);
  expect(poller.view.summary?.[kind]?.[name]).toMatchObject(kind === "dots" ? { lit: false } : { unread: 0 });
  const request = await stub.last();
  expect([request.method, request.url, request.body]).toEqual(["POST", url, '{"up_to":3}']);
  // A browser sends it although the click leaves the page.
  expect(request.keepalive).toBe(true);
  await request.answer(200, answer);
  expect(poller.view.summary).toMatchObject({ revision: 2 });
});

test("a refused reset falls back and is reported", async () => {
  const refused: unknown[] = [];
  const { stub, poller } = start({ onResetRefused: (reset) => refused.push(reset) });
  await (await stub.last()).answer(200, summary(1, 3));
  poller.reset("counters", "mention");
  expect(poller.view.summary?.total).toBe(0);
  const body = { type: "/problems/forbidden", status: 403, title: "T", detail: "D", code: "forbidden" };
  await (await stub.last()).answer(403, body);
  expect(poller.view.summary?.total).toBe(3);
  expect(refused).toEqual([{ type: "refused", kind: "counters", name: "mention", trouble: { status: 403, code: "forbidden" } }]);
});

test("a listener may reset and refresh, and one that throws harms no other", async () => {
  const reported = catchReported();
  const { stub, poller } = start();
  poller.subscribe(() => {
    throw new Error("a broken component");
  });
  poller.subscribe(({ summary: shown }) => {
    if (shown?.total === 3) poller.reset("counters", "mention");
  });
  await (await stub.last()).answer(200, summary(1, 3));
  expect(poller.view.summary?.total).toBe(0);
  expect(stub.requests.at(-1)?.url).toBe("/v1/users/me/badges/mention/reset");
  await settle();
  expect(reported.length).toBeGreaterThan(0);
});

test("a token function that fails is reported once in a row of failures, and asked again", async () => {
  const reported = catchReported();
  const token: { error: Error | null } = { error: null };
  const stub = new Stub();
  const { poller } = start({ headmark: stub.client({ token: tokenThat(token) }) }, stub);
  await (await stub.last()).answer(200, summary(1, 3));
  const signedOut = new Error("signed out");
  token.error = signedOut;
  await stub.pass(200_000);
  expect(poller.view).toMatchObject({ status: "retrying", trouble: { status: 0, code: "no_answer" } });
  expect(reported).toEqual([signedOut]);
  // Another error is news.
  const bug = new TypeError("user is undefined");
  token.error = bug;
  await stub.pass(200_000);
  expect(reported).toEqual([signedOut, bug]);
  token.error = null;
  await stub.pass(60_000);
  await (await stub.last()).answer(200, summary(1, 3));
  expect(poller.view.status).toBe("live");
  token.error = bug;
  await stub.pass(60_000);
  expect(reported).toEqual([signedOut, bug, bug]);
});

test("no answer, a refusal and a pause are not reported", async () => {
  const reported = catchReported();
  const { stub } = start();
  await (await stub.last()).fail();
  await stub.pass(1_000);
  await (await stub.last()).answer(502);
  await stub.pass(2_000);
  await stub.signal("hidden");
  expect((await stub.last()).isAborted).toBe(true);
  expect(reported).toEqual([]);
});
