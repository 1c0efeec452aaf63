// What React Native has instead of a browser's: the `fetch` of whatwg-fetch over XMLHttpRequest, an incomplete
// `URL`, no `crypto`, and signals without a reason.

import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { createHeadmark } from "../src/client.js";

interface Sent {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string | null;
}

let sent: Sent[] = [];
/** The status and the body of each next answer; null: there is none. */
let answers: ([number, string] | null)[] = [];

class FakeXhr {
  status = 0;
  statusText = "";
  response = "";
  onload = () => {};
  onerror = () => {};
  onabort = () => {};
  readonly #sent: Sent = { method: "", url: "", headers: {}, body: null };

  open(method: string, url: string): void {
    Object.assign(this.#sent, { method, url });
  }

  setRequestHeader(name: string, value: string): void {
    this.#sent.headers[name] = value;
  }

  getAllResponseHeaders(): string {
    return "content-type: application/json\r\nx-request-id: r1\r\n";
  }

  abort(): void {
    this.onabort();
  }

  send(body: string | null): void {
    sent.push({ ...this.#sent, body });
    const answer = answers.shift();
    if (answer === undefined) return;
    setTimeout(() => {
      if (answer === null) return this.onerror();
      [this.status, this.response] = answer;
      this.onload();
    });
  }
}

class NoUrl {
  constructor() {
    throw new Error("not implemented");
  }
}

class PlainAbortController extends AbortController {
  constructor() {
    super();
    Object.defineProperty(this.signal, "reason", { value: undefined });
  }
}

beforeAll(async () => {
  // It has no types.
  const path = "whatwg-fetch";
  const { fetch, Headers, Request, Response } = (await import(path)) as Record<string, unknown>;
  const globals = {
    fetch,
    Headers,
    Request,
    Response,
    XMLHttpRequest: FakeXhr,
    URL: NoUrl,
    AbortController: PlainAbortController,
  };
  for (const [name, value] of Object.entries({ ...globals, crypto: undefined })) vi.stubGlobal(name, value);
});

afterAll(() => void vi.unstubAllGlobals());

beforeEach(() => {
  sent = [];
  answers = [];
});

const baseUrl = "http://headmark.test";
const path = { user: "42", badge: "mention" };
const INCREMENT = "/v1/users/{user}/badges/{badge}/increment";

test("a poll that waits, with a tag and no other parameter", async () => {
  answers = [[304, ""]];
  const options = { params: { path, query: { wait: 30 } }, tag: '"t1"' };
  const { data, response } = await createHeadmark({ baseUrl, token: "secret" }).GET("/v1/users/{user}/badges", options);
  expect([data, response.status]).toEqual([undefined, 304]);
  // With `cache: "no-store"`, whatwg-fetch would add the time to the query, which the server refuses.
  expect(sent[0]?.url).toBe("http://headmark.test/v1/users/42/badges?wait=30");
  expect(sent[0]?.headers).toEqual({
    authorization: "Bearer secret",
    "cache-control": "no-store",
    "if-none-match": '"t1"',
    "x-request-id": expect.stringMatching(/^[0-9a-f]{32}$/),
  });
});

test("a POST is sent again with its body where that is safe", async () => {
  answers = [null, [200, '{"unread":1}']];
  const header = { "Idempotency-Key": "k1" };
  const { data } = await createHeadmark({ baseUrl }).POST(INCREMENT, { params: { path, header }, body: { by: 2 } });
  expect(data.unread).toBe(1);
  expect(sent.map(({ method, body }) => [method, body])).toEqual([
    ["POST", '{"by":2}'],
    ["POST", '{"by":2}'],
  ]);
  expect(new Set(sent.map(({ headers }) => headers["x-request-id"])).size).toBe(1);

  answers = [null];
  await expect(createHeadmark({ baseUrl }).POST(INCREMENT, { params: { path }, body: {} })).rejects.toThrow("no answer: network");
  expect(sent.length).toBe(3);
});

test("a problem", async () => {
  answers = [[404, '{"code":"not_found","title":"T","detail":"D."}']];
  const request = createHeadmark({ baseUrl }).GET("/v1/users/{user}/badges", { params: { path } });
  await expect(request).rejects.toMatchObject({ name: "ProblemError", code: "not_found", requestId: "r1" });
});

test("a request that takes too long, and one that is given up", async () => {
  const request = createHeadmark({ baseUrl, timeoutMs: 50, retries: 0 }).GET("/v1/users/{user}/badges", { params: { path } });
  await expect(request).rejects.toMatchObject({ reason: "timeout" });
  const controller = new AbortController();
  const { signal } = controller;
  const other = createHeadmark({ baseUrl }).GET("/v1/users/{user}/badges", { params: { path }, signal });
  controller.abort();
  await expect(other).rejects.toMatchObject({ name: "AbortError" });
});
