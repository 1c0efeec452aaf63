// Tokens: which one a request sends, who renews it, and that no error tells it.

import { AsyncLocalStorage } from "node:async_hooks";
import { inspect } from "node:util";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { createHeadmark } from "../src/client.js";
import type { Token } from "../src/tokens.js";
import { json, problem, serve } from "./http.js";
import { Stub, settle } from "./stub.js";

afterEach(() => vi.restoreAllMocks());

const SUMMARY = { user_id: "42", epoch: "e1", degraded: false, total: 3 };
const REJECTED = { code: "unauthorized", title: "T", detail: "D" };
const user = { params: { path: { user: "42" } } };

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
  expect(asked).toEqual([false, false, true, false, false, true]);
});

test("a token that cannot be had, or not in time", async () => {
  const { baseUrl, requests } = await serve(json(200, SUMMARY));
  const signedOut = createHeadmark({ baseUrl, token: () => Promise.reject(new Error("signed out")) });
  await expect(signedOut.GET("/v1/users/{user}/badges", user)).rejects.toThrow("signed out");
  // The page to sign in instead of a token: the answer that is malformed is not one of Headmark.
  const signIn = createHeadmark({ baseUrl, token: () => JSON.parse("<h1>Sign in") as string });
  await expect(signIn.GET("/v1/users/{user}/badges", user)).rejects.toBeInstanceOf(SyntaxError);
  const slow = createHeadmark({ baseUrl, token: () => new Promise(() => {}), timeoutMs: 50, retries: 0 });
  await expect(slow.GET("/v1/users/{user}/badges", user)).rejects.toMatchObject({ reason: "timeout" });
  expect(requests.length).toBe(0);
});

/** An app whose tokens a test gives by hand, and the requests of its client. */
class App {
  readonly stub = new Stub();
  readonly asked: { isRejected: boolean; give: (token: string) => Promise<void>; fail: (error: Error) => Promise<void> }[] = [];
  readonly outcomes: unknown[] = [];
  readonly #headmark = this.stub.client({ token: (isRejected) => this.#ask(isRejected) });

  #ask(isRejected: boolean): Promise<string> {
    return new Promise((resolve, reject) => {
      const end = (by: () => void) => {
        by();
        return settle();
      };
      this.asked.push({ isRejected, give: (token) => end(() => resolve(token)), fail: (error) => end(() => reject(error)) });
    });
  }

  /** Begins a request, for which the app gives this token; or none yet. */
  async get(token?: string): Promise<void> {
    const index = this.outcomes.push(null) - 1;
    const end = (outcome: unknown) => {
      this.outcomes[index] = outcome;
    };
    this.#headmark.GET("/v1/users/{user}/badges", { ...user, retries: 0 }).then(({ data }) => end(data), end);
    await settle();
    if (token !== undefined) await this.asked.at(-1)?.give(token);
  }

  /** The server rejects the token of a request, and the app has this one by then. */
  async reject(index: number, token: string): Promise<void> {
    await this.stub.requests[index]?.answer(401, REJECTED);
    await this.asked.at(-1)?.give(token);
  }

  get renewals(): number {
    return this.asked.filter(({ isRejected }) => isRejected).length;
  }

  get sent(): (string | null)[] {
    return this.stub.requests.map(({ headers }) => headers.get("authorization"));
  }
}

test("requests whose token is rejected share one renewal, also one that hears of it later", async () => {
  const app = new App();
  for (let count = 0; count < 3; count += 1) await app.get("old");
  await app.reject(0, "old");
  const [renewal] = app.asked.slice(-1);
  await app.reject(1, "old");
  expect(app.renewals).toBe(1);
  await renewal?.give("new");
  expect(app.sent).toEqual(["Bearer old", "Bearer old", "Bearer old", "Bearer new", "Bearer new"]);
  await app.reject(2, "old");
  expect(app.sent.at(-1)).toBe("Bearer new");
  expect(app.renewals).toBe(1);
  for (const request of app.stub.requests.slice(3)) await request.answer(200, SUMMARY);
  expect(app.outcomes).toEqual([SUMMARY, SUMMARY, SUMMARY]);
});

test("a token that the function has replaced is not renewed, and the other one is if it is rejected, too", async () => {
  const app = new App();
  await app.get("old");
  await app.reject(0, "later");
  expect(app.renewals).toBe(0);
  await app.reject(1, "later");
  expect(app.renewals).toBe(1);
  await app.asked.at(-1)?.give("new");
  expect(app.sent).toEqual(["Bearer old", "Bearer later", "Bearer new"]);
  await app.stub.requests[2]?.answer(401, REJECTED);
  expect(app.outcomes[0]).toMatchObject({ status: 401 });
  expect(app.renewals).toBe(1);
});

test("a request is not sent again with the token of another one", async () => {
  const app = new App();
  await app.get("old");
  await app.get("another user's");
  await app.reject(0, "old");
  expect(app.renewals).toBe(1);
  await app.asked.at(-1)?.give("new");
  expect(app.sent).toEqual(["Bearer old", "Bearer another user's", "Bearer new"]);
});

test("a token that was asked for before the renewal is older", async () => {
  const app = new App();
  await app.get("old");
  await app.get();
  await app.reject(0, "old");
  await app.asked.at(-1)?.give("new");
  await app.asked[1]?.give("old");
  await app.reject(2, "old");
  expect(app.sent).toEqual(["Bearer old", "Bearer new", "Bearer old", "Bearer new"]);
  expect(app.renewals).toBe(1);
});

test("a token that the function gives again after its renewal is renewed again", async () => {
  const app = new App();
  for (const renewals of [1, 2]) {
    await app.get("old");
    await app.reject(2 * renewals - 2, "old");
    expect(app.renewals).toBe(renewals);
    await app.asked.at(-1)?.give("new");
  }
});

test("a renewal that fails fails all that wait for it, and the next 401 tries again", async () => {
  const app = new App();
  await app.get("old");
  await app.get("old");
  await app.reject(0, "old");
  const [renewal] = app.asked.slice(-1);
  await app.reject(1, "old");
  const signedOut = new Error("signed out");
  await renewal?.fail(signedOut);
  expect(app.outcomes).toEqual([signedOut, signedOut]);
  await app.get("old");
  await app.reject(2, "old");
  expect(app.renewals).toBe(2);
});

test("requests of different users keep their tokens, and each user's share one renewal", async () => {
  const current = new AsyncLocalStorage<string>();
  const renewed: string[] = [];
  const token = async (isRejected: boolean) => {
    const own = String(current.getStore());
    if (isRejected) renewed.push(own);
    await new Promise((resolve) => setTimeout(resolve, 5));
    return `${own}.${renewed.filter((one) => one === own).length}`;
  };
  const strangers: unknown[] = [];
  const { baseUrl } = await serve((request, response) => {
    const owner = request.url?.split("/")[3];
    const given = request.headers.authorization;
    if (!given?.startsWith(`Bearer ${owner}.`)) strangers.push([owner, given]);
    const answer = given === `Bearer ${owner}.1` ? json(200, SUMMARY) : problem(401, "unauthorized");
    // Some are rejected only after the renewal.
    setTimeout(() => answer(request, response), renewed.length % 3);
  });
  const headmark = createHeadmark({ baseUrl, token });
  const send = (name: string) =>
    current.run(name, () => headmark.GET("/v1/users/{user}/badges", { params: { path: { user: name } } }));
  const sent = await Promise.allSettled(Array.from({ length: 40 }, (_, number) => send(String(number % 5))));
  expect(strangers).toEqual([]);
  expect(sent.filter(({ status }) => status === "rejected")).toEqual([]);
  expect(renewed.sort()).toEqual(["0", "1", "2", "3", "4"]);
});

test("a renewal that never ends is given up", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const app = new App();
  await app.get("old");
  await app.reject(0, "old");
  vi.advanceTimersByTime(10_000);
  await settle();
  expect(app.outcomes).toEqual([expect.objectContaining({ reason: "timeout" })]);
  await app.get("old");
  await app.reject(1, "old");
  expect(app.renewals).toBe(2);
});

const BROKEN: Token[] = ["se\ncret", () => "se\r\ncret", () => Promise.resolve("secret\u20ac")];

test.each(BROKEN)("no error tells a token that no header can have (%#)", async (token) => {
  const { baseUrl, requests } = await serve(json(200, SUMMARY));
  const request = createHeadmark({ baseUrl, token, retries: 0 }).GET("/v1/users/{user}/badges", user);
  const error = await request.catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: "TypeError", message: "the token has a character that no header can have" });
  expect(inspect(error, { depth: 9 })).not.toContain("cret");
  expect(requests.length).toBe(0);
});

test.each(["\nsecret\n", " secret", "\ufeffsecret\u00a0"])(
  "a token is sent without white space around it (%#)",
  async (token) => {
    const { baseUrl, requests } = await serve(json(200, SUMMARY));
    await createHeadmark({ baseUrl, token, retries: 0 }).GET("/v1/users/{user}/badges", user);
    expect(requests.map((request) => request.headers.authorization)).toEqual(["Bearer secret"]);
  },
);
