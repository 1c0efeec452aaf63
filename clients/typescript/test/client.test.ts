// The typed client over real HTTP.

import { readFileSync } from "node:fs";
import { expect, expectTypeOf, onTestFinished, test, vi } from "vitest";
import { createHeadmark } from "../src/client.js";
import { NoAnswerError, ProblemError } from "../src/errors.js";
import type { components } from "../src/generated/openapi.js";
import type { CallOptions } from "../src/transport.js";
import type { InboxPage, UnreadSummary } from "../src/types.js";
import { json, problem, serve } from "./http.js";
import { Stub } from "./stub.js";

const SUMMARY = { user_id: "42", epoch: "e1", degraded: false, total: 3 };
const user = { params: { path: { user: "42" } } };

test("answers are typed, and requests name themselves", async () => {
  const { baseUrl, requests } = await serve(json(200, SUMMARY, { etag: '"t1"' }));
  const headmark = createHeadmark({ baseUrl, token: "secret" });
  const { data, response } = await headmark.GET("/v1/users/{user}/badges", {
    params: { path: { user: "42" }, query: { cap: 99 } },
  });
  expectTypeOf(data).toEqualTypeOf<UnreadSummary>();
  expect(data.total).toBe(3);
  expect(response.headers.get("etag")).toBe('"t1"');
  expect(requests[0]?.url).toBe("/v1/users/42/badges?cap=99");
  expect(requests[0]?.headers.authorization).toBe("Bearer secret");
  expect(requests[0]?.headers["x-request-id"]).toMatch(/^[0-9a-f]{32}$/);
});

test("a body that does not fit the document does not compile", async () => {
  const { baseUrl, requests } = await serve(json(200, {}));
  const headmark = createHeadmark({ baseUrl });
  const path = { user: "42", badge: "mention" };
  // @ts-expect-error: the field is `up_to`
  await headmark.POST("/v1/users/{user}/badges/{badge}/reset", { params: { path }, body: { upTo: 3 } });
  // @ts-expect-error: there is no such route
  await headmark.POST("/v1/users/{user}/badge", {});
  await headmark.POST("/v1/users/{user}/badges/{badge}/reset", { params: { path }, body: { up_to: 3 } });
  expect(requests[2]?.body).toBe('{"up_to":3}');
  const { data } = await headmark.GET("/v1/users/{user}/inbox", user);
  expectTypeOf(data).toEqualTypeOf<InboxPage>();
});

test("a route that does not answer JSON does not compile, and these are all of them", async () => {
  const { baseUrl } = await serve(json(200, {}));
  const headmark = createHeadmark({ baseUrl });
  // @ts-expect-error: it streams lines
  await headmark.GET("/v1/users/{user}/export", user);
  // @ts-expect-error: it answers text
  await headmark.GET("/metrics");

  type Operation = { responses: Record<string, { content?: object }> };
  const file = new URL("../../../openapi/openapi.json", import.meta.url);
  const { paths } = JSON.parse(readFileSync(file, "utf8")) as { paths: Record<string, Record<string, Operation>> };
  const isOther = ({ responses }: Operation) =>
    Object.entries(responses).some(
      ([status, { content }]) => status.startsWith("2") && content && !("application/json" in content),
    );
  const others = Object.entries(paths).filter(([, operations]) => Object.values(operations).some(isOther));
  expect(others.map(([path]) => path)).toEqual(["/metrics", "/v1/users/{user}/export"]);
});

test("the answers of the server are of the types of the document, where these are made of several", async () => {
  const flags = {
    blocking: false,
    muting: false,
    followed_by: true,
    following: true,
    requested: false,
    mutual: true,
    secret: false,
    special: false,
  };
  const relation: components["schemas"]["RelationOut"] = { ...flags, user_id: "7" };
  const notice: components["schemas"]["NoticeOut"] = {
    channel: "system",
    created_at: "2026-01-31T09:30:00.123Z",
    seq: 1,
    title: "T",
  };
  const { baseUrl } = await serve(json(200, { items: [relation] }), json(200, { items: [notice], next_cursor: null }));
  const headmark = createHeadmark({ baseUrl });
  const relations = await headmark.GET("/v1/users/{user}/relations", { params: { path: { user: "42" }, query: { ids: "7" } } });
  expect(relations.data.items).toEqual([relation]);
  const notices = await headmark.GET("/v1/broadcasts/{channel}", { params: { path: { channel: "system" } } });
  expect(notices.data.items).toEqual([notice]);
});

test("a 304 has no data, and only a request with a tag gets one", async () => {
  const { baseUrl, requests } = await serve((_, response) => response.writeHead(304, { etag: '"t1"' }).end());
  const headmark = createHeadmark({ baseUrl });
  const { data, response } = await headmark.GET("/v1/users/{user}/badges", { ...user, tag: '"t1"' });
  expectTypeOf(data).toEqualTypeOf<UnreadSummary | undefined>();
  expect(data).toBeUndefined();
  expect(response.status).toBe(304);
  expect(requests[0]?.headers["if-none-match"]).toBe('"t1"');
});

test("an answer without a body", async () => {
  const { baseUrl } = await serve((_, response) => response.writeHead(204).end());
  const params = { path: { user: "42", target: "7" } };
  const { response } = await createHeadmark({ baseUrl }).DELETE("/v1/users/{user}/following/{target}", { params });
  expect(response.status).toBe(204);
});

test("a problem is thrown with all that it says", async () => {
  const headers = { "retry-after": "7", "x-request-id": "r1" };
  const { baseUrl } = await serve(problem(429, "rate_limited", headers));
  const error = await createHeadmark({ baseUrl, retries: 0 })
    .GET("/v1/users/{user}/badges", user)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ProblemError);
  expect(error).toMatchObject({ status: 429, code: "rate_limited", retryAfterS: 7, requestId: "r1", message: "Title: Detail." });
});

test("the error page of a proxy is a problem without a code", async () => {
  const { baseUrl } = await serve((_, response) => response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad"));
  const request = createHeadmark({ baseUrl, retries: 0 }).GET("/v1/users/{user}/badges", user);
  await expect(request).rejects.toMatchObject({ name: "ProblemError", status: 502, code: null, problem: null });
});

test("a Retry-After may be a date", async () => {
  const { baseUrl } = await serve(problem(503, "overloaded", { "retry-after": new Date(Date.now() + 60_000).toUTCString() }));
  const error = (await createHeadmark({ baseUrl, retries: 0 })
    .GET("/v1/users/{user}/badges", user)
    .catch((thrown: unknown) => thrown)) as ProblemError;
  expect(error.retryAfterS).toBeGreaterThan(57);
  expect(error.retryAfterS).toBeLessThanOrEqual(60);
});

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
    problem(503, "unknown_outcome", soon),
    (_: unknown, response: { destroy(): void }) => response.destroy(),
  ]) {
    expect(await noKey(unknown)).toEqual({ isRefused: true, count: 1 });
  }
});

test("errors that a repeat cannot cure, and long pauses, are not tried again", async () => {
  for (const handler of [problem(404, "not_found"), problem(503, "overloaded", { "retry-after": "60" })]) {
    const { baseUrl, requests } = await serve(handler);
    await expect(createHeadmark({ baseUrl }).GET("/v1/users/{user}/badges", user)).rejects.toBeInstanceOf(ProblemError);
    expect(requests.length).toBe(1);
  }
});

test("a rejected token is renewed once", async () => {
  const { baseUrl, requests } = await serve(problem(401, "unauthorized"), json(200, SUMMARY), problem(401, "unauthorized"));
  const asked: boolean[] = [];
  const token = (isRejected: boolean) => {
    asked.push(isRejected);
    return isRejected ? "new" : "old";
  };
  const headmark = createHeadmark({ baseUrl, token });
  await headmark.GET("/v1/users/{user}/badges", user);
  expect(requests.map((request) => request.headers.authorization)).toEqual(["Bearer old", "Bearer new"]);
  await expect(headmark.GET("/v1/users/{user}/badges", user)).rejects.toMatchObject({ status: 401 });
  expect(asked).toEqual([false, true, false, true]);
});

test("a token that cannot be had, or not in time", async () => {
  const { baseUrl, requests } = await serve(json(200, SUMMARY));
  const signedOut = createHeadmark({ baseUrl, token: () => Promise.reject(new Error("signed out")) });
  await expect(signedOut.GET("/v1/users/{user}/badges", user)).rejects.toThrow("signed out");
  // The page to sign in instead of a token: the answer that is malformed is not one of Headmark.
  const signIn = createHeadmark({ baseUrl, token: () => JSON.parse("<h1>Sign in") as string });
  await expect(signIn.GET("/v1/users/{user}/badges", user)).rejects.toMatchObject({
    message: "the token function failed",
    cause: expect.any(SyntaxError),
  });
  const slow = createHeadmark({ baseUrl, token: () => new Promise(() => {}), timeoutMs: 50, retries: 0 });
  await expect(slow.GET("/v1/users/{user}/badges", user)).rejects.toMatchObject({ reason: "timeout" });
  expect(requests.length).toBe(0);
});

test("no answer: the server is away, stalls, breaks off or says something else", async () => {
  const away = createHeadmark({ baseUrl: "http://127.0.0.1:9", retries: 0 });
  await expect(away.GET("/v1/users/{user}/badges", user)).rejects.toMatchObject({ name: "NoAnswerError", reason: "network" });

  const { baseUrl } = await serve(
    () => {},
    (_, response) => response.writeHead(200, { "content-type": "application/json" }).write('{"user_id":'),
    (_, response) => response.writeHead(200, { "content-length": "99" }).write('{"user_id":', () => response.destroy()),
    (_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<h1>Sign in to the Wi-Fi"),
  );
  const headmark = createHeadmark({ baseUrl, retries: 0, timeoutMs: 100 });
  for (const reason of ["timeout", "timeout", "network", "malformed"]) {
    const error = await headmark.GET("/v1/users/{user}/badges", user).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NoAnswerError);
    expect(error).toMatchObject({ reason });
  }
});

test("the caller's abort is not an error of the server", async () => {
  const { baseUrl } = await serve(() => {});
  const controller = new AbortController();
  const request = createHeadmark({ baseUrl }).GET("/v1/users/{user}/badges", { ...user, signal: controller.signal });
  controller.abort(new Error("the page is gone"));
  await expect(request).rejects.toThrow("the page is gone");
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
