// How a request is sent: again after failures, with a token, in time.

import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { createHeadmark } from "../src/client.js";
import { ProblemError } from "../src/errors.js";
import { systemClock } from "../src/surroundings.js";
import type { CallOptions } from "../src/transport.js";
import { json, problem, serve } from "./http.js";
import { Stub, settle } from "./stub.js";

afterEach(() => vi.restoreAllMocks());

const SUMMARY = { user_id: "42", epoch: "e1", degraded: false, total: 3 };
const user = { params: { path: { user: "42" } } };

test("what changes nothing when repeated is sent again, with the same request id", async () => {
  const { baseUrl, requests } = await serve(
    problem(503, "overloaded", { "retry-after": "0" }),
    (_, response) => response.destroy(),
    json(200, SUMMARY),
  );
  const { data } = await createHeadmark({ baseUrl }).GET("/v1/users/{user}/badges", user);
  expect(data.total).toBe(3);
  expect(new Set(requests.map((request) => request.headers["x-request-id"])).size).toBe(1);
  expect(requests.length).toBe(3);
});

test("a POST is sent again with a key, with its body, and without one where nothing changed", async () => {
  const { baseUrl, requests } = await serve(problem(503, "overloaded", { "retry-after": "0" }), json(200, {}));
  const headmark = createHeadmark({ baseUrl });
  const params = { path: { user: "42", badge: "mention" } };
  const route = "/v1/users/{user}/badges/{badge}/increment";
  await headmark.POST(route, { params: { ...params, header: { "Idempotency-Key": "k1" } }, body: { by: 2 } });
  expect(requests.map((request) => request.body)).toEqual(['{"by":2}', '{"by":2}']);

  const noKey = async (...answers: Parameters<typeof serve>) => {
    const { baseUrl, requests } = await serve(...answers, json(200, {}));
    const sent = createHeadmark({ baseUrl }).POST(route, { params, body: { by: 2 } });
    return {
      isRefused: await sent.then(
        () => false,
        () => true,
      ),
      count: requests.length,
    };
  };
  const soon = { "retry-after": "0" };
  expect(await noKey(problem(503, "overloaded", soon))).toEqual({ isRefused: false, count: 2 });
  expect(await noKey(problem(409, "idempotency_in_progress", soon))).toEqual({ isRefused: false, count: 2 });
  for (const unknown of [
    problem(503, "outcome_unknown", soon),
    (_: unknown, response: { destroy(): void }) => response.destroy(),
  ]) {
    expect(await noKey(unknown)).toEqual({ isRefused: true, count: 1 });
  }
});

test.each(["", "null", "[]", "7", '"a"', '{"user_id":', "<h1>Sign in to the Wi-Fi"])(
  "a success that is no object is no answer: %s",
  async (body) => {
    const { baseUrl } = await serve((_, response) => response.writeHead(200, { "content-type": "application/json" }).end(body));
    const request = createHeadmark({ baseUrl, retries: 0 }).GET("/v1/users/{user}/badges", user);
    await expect(request).rejects.toMatchObject({ name: "NoAnswerError", reason: "malformed" });
  },
);

test("nor is a 304 that nobody asked for", async () => {
  const { baseUrl } = await serve((_, response) => response.writeHead(304).end());
  const request = createHeadmark({ baseUrl, retries: 0 }).GET("/v1/users/{user}/badges", user);
  await expect(request).rejects.toMatchObject({ name: "NoAnswerError", reason: "malformed" });
});

test("a redirect is not followed, with which a POST would become a GET of another page", async () => {
  const { baseUrl, requests } = await serve(
    (_, response) => response.writeHead(302, { location: "/login" }).end("Found"),
    json(200, {}),
  );
  const params = { path: { user: "42", badge: "mention" } };
  const request = createHeadmark({ baseUrl }).POST("/v1/users/{user}/badges/{badge}/increment", { params, body: {} });
  await expect(request).rejects.toMatchObject({ name: "ProblemError", status: 302, code: null });
  expect(requests.length).toBe(1);
});

test("in a browser, which hides where a redirect leads, it is no answer", async () => {
  const seen: unknown[] = [];
  const fetch = (_: Request, init?: RequestInit) => {
    seen.push(init?.redirect);
    // As an opaque redirect, it has no status.
    return Promise.resolve(Response.error());
  };
  const request = createHeadmark({ baseUrl: "http://headmark.test", fetch, retries: 0 }).GET("/v1/users/{user}/badges", user);
  await expect(request).rejects.toMatchObject({ name: "NoAnswerError", reason: "malformed" });
  expect(seen).toEqual(["manual"]);
});

test("a request without a usable answer is sent again where that is safe", async () => {
  const { baseUrl, requests } = await serve(json(200, null), json(200, SUMMARY), json(200, []));
  const headmark = createHeadmark({ baseUrl });
  expect((await headmark.GET("/v1/users/{user}/badges", user)).data.total).toBe(3);
  expect(requests.length).toBe(2);
  const params = { path: { user: "42", badge: "mention" } };
  const counted = headmark.POST("/v1/users/{user}/badges/{badge}/increment", { params, body: {} });
  await expect(counted).rejects.toMatchObject({ name: "NoAnswerError", reason: "malformed" });
  expect(requests.length).toBe(3);
});

test("errors that a repeat cannot cure, and long pauses, are not tried again", async () => {
  for (const handler of [problem(404, "not_found"), problem(503, "overloaded", { "retry-after": "60" })]) {
    const { baseUrl, requests } = await serve(handler);
    await expect(createHeadmark({ baseUrl }).GET("/v1/users/{user}/badges", user)).rejects.toBeInstanceOf(ProblemError);
    expect(requests.length).toBe(1);
  }
});

test("a server that asks for no pause, or always for the same one, is asked with backoff", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  vi.spyOn(Math, "random").mockReturnValue(0);
  const stub = new Stub();
  const outcome = stub.headmark.GET("/v1/users/{user}/badges", user);
  const isSentAfter = async (ms: number) => {
    const before = stub.requests.length;
    vi.advanceTimersByTime(ms - 1);
    await settle();
    expect(stub.requests.length).toBe(before);
    vi.advanceTimersByTime(1);
    await settle();
    expect(stub.requests.length).toBe(before + 1);
  };
  await (await stub.last()).answer(503, {}, { "retry-after": "0" });
  await isSentAfter(1_000);
  await (await stub.last()).answer(503, {}, { "retry-after": "1" });
  await isSentAfter(2_000);
  await (await stub.last()).answer(200, SUMMARY);
  expect((await outcome).data.total).toBe(3);
});

/** When a request without an answer is given up; the clock is turned by hand. */
async function timeLimit(query: { wait?: number }, options: CallOptions): Promise<number> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const stub = new Stub();
  const outcome = stub.headmark.GET("/v1/events", { params: { query }, retries: 0, ...options }).catch((error: unknown) => error);
  const request = await stub.last();
  let ms = 0;
  for (; !request.isAborted && ms < 100_000; ms += 1_000) vi.advanceTimersByTime(1_000);
  expect(await outcome).toMatchObject({ name: "NoAnswerError", reason: "timeout" });
  expect(stub.requests.length).toBe(1);
  return ms;
}

test("a call may have its own time limit", async () => {
  expect(await timeLimit({}, {})).toBe(10_000);
  expect(await timeLimit({}, { timeoutMs: 3_000 })).toBe(3_000);
});

test("a request that waits has its `wait` on top of the time limit", async () => {
  expect(await timeLimit({ wait: 30 }, {})).toBe(40_000);
  expect(await timeLimit({ wait: 30 }, { timeoutMs: 3_000 })).toBe(33_000);
  expect(await timeLimit({ wait: 0 }, {})).toBe(10_000);
});

test.each([Number.POSITIVE_INFINITY, 2 ** 31])(
  "a time limit of %s ms is longer than a timer, and does not end at once",
  async (timeoutMs) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const stub = new Stub();
    const outcome = stub.headmark.GET("/v1/users/{user}/badges", { ...user, timeoutMs });
    const request = await stub.last();
    vi.advanceTimersByTime(1_000_000);
    expect(request.isAborted).toBe(false);
    await request.answer(200, SUMMARY);
    expect((await outcome).data.total).toBe(3);
  },
);

test("so is the pause of a server that asks for polls once in a month", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const wake = vi.fn();
  systemClock.sleep(31 * 86_400_000, wake);
  vi.advanceTimersByTime(1_000_000);
  expect(wake).not.toHaveBeenCalled();
});
