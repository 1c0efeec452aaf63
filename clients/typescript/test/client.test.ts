// The typed client over real HTTP.

import { readFileSync } from "node:fs";
import { expect, expectTypeOf, test } from "vitest";
import { createHeadmark } from "../src/client.js";
import { NoAnswerError, ProblemError } from "../src/errors.js";
import type { components } from "../src/generated/openapi.js";
import type { InboxPage, UnreadSummary } from "../src/types.js";
import { type Handler, json, problem, serve } from "./http.js";

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

test.each(["", ".", ".."])("a path value that leads to another route is not sent: %j", async (target) => {
  const { baseUrl, requests } = await serve(json(200, SUMMARY));
  const headmark = createHeadmark({ baseUrl });
  const params = { path: { user: "42", target } };
  await expect(headmark.DELETE("/v1/users/{user}/following/{target}", { params })).rejects.toThrow(
    `the path value target must not be ${JSON.stringify(target)}`,
  );
  expect(requests.length).toBe(0);
  // Any other is escaped.
  await headmark.GET("/v1/users/{user}/badges", { params: { path: { user: "../a b/..." } } });
  expect(requests[0]?.url).toBe("/v1/users/..%2Fa%20b%2F.../badges");
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

test.each([
  { code: "NOT_FOUND", message: "no Route matched" },
  { code: 5, title: "T", detail: "D" },
  { errors: ["nope"] },
  { errors: null },
  null,
])("nor is the JSON of a gateway one with a code: %j", async (body) => {
  const { baseUrl } = await serve(json(404, body));
  const request = createHeadmark({ baseUrl }).GET("/v1/users/{user}/badges", user);
  await expect(request).rejects.toMatchObject({ status: 404, code: null, problem: null, message: "HTTP status 404" });
});

test("a Retry-After may be a date", async () => {
  const { baseUrl } = await serve(problem(503, "overloaded", { "retry-after": new Date(Date.now() + 60_000).toUTCString() }));
  const error = (await createHeadmark({ baseUrl, retries: 0 })
    .GET("/v1/users/{user}/badges", user)
    .catch((thrown: unknown) => thrown)) as ProblemError;
  expect(error.retryAfterS).toBeGreaterThan(57);
  expect(error.retryAfterS).toBeLessThanOrEqual(60);
});

test("no answer: the server is away, stalls, breaks off or says something else", async () => {
  const away = createHeadmark({ baseUrl: "http://127.0.0.1:9", retries: 0 });
  await expect(away.GET("/v1/users/{user}/badges", user)).rejects.toMatchObject({ name: "NoAnswerError", reason: "network" });

  const cases: [string, number, Handler][] = [
    ["timeout", 100, () => {}],
    ["timeout", 100, (_, response) => response.writeHead(200, { "content-type": "application/json" }).write('{"user_id":')],
    [
      "network",
      10_000,
      (_, response) => response.writeHead(200, { "content-length": "99" }).write('{"user_id":', () => response.destroy()),
    ],
    ["malformed", 10_000, (_, response) => response.writeHead(200).end("<h1>Sign in to the Wi-Fi")],
  ];
  for (const [reason, timeoutMs, handler] of cases) {
    const { baseUrl } = await serve(handler);
    const headmark = createHeadmark({ baseUrl, retries: 0, timeoutMs });
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
