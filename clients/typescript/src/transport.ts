// One request from start to end: credentials, a request id, a time limit, retries, and errors as
// exceptions. openapi-fetch calls this instead of `fetch`.

import { inTime, pause } from "./deadline.js";
import { NoAnswerError, ProblemError } from "./errors.js";
import { pauseOf } from "./pace.js";
import { mayRepeat } from "./repeat.js";
import { authorize, type Token, Tokens, type Used } from "./tokens.js";

type Fetch = (request: Request, init?: RequestInit) => Promise<Response>;

export interface TransportOptions {
  /** A user's token or a service key. Without it the server must run open. */
  token?: Token;
  /** How long an answer may take, its body included, beyond the `wait` of the request; by default 10,000. */
  timeoutMs?: number;
  /** How often a request is sent again, where that is safe; by default 2. */
  retries?: number;
  /** By default the global `fetch`. */
  fetch?: Fetch;
}

/** What one call may set differently. */
export type CallOptions = Pick<TransportOptions, "timeoutMs" | "retries">;

interface Received {
  response: Response;
  body: string;
  used: Used;
}

/** A server that asks for a longer pause is not tried again: the caller knows better what to do. */
const MAX_RETRY_PAUSE_MS = 10_000;

export function createTransport(options: TransportOptions): (request: Request) => Promise<Response> {
  const tokens = new Tokens(options.token);
  return (request) => {
    // openapi-fetch puts the options of a call that `Request` does not know onto the request.
    const { timeoutMs = options.timeoutMs ?? 10_000, retries = options.retries ?? 2 }: CallOptions = request as CallOptions;
    if (!request.headers.has("x-request-id")) request.headers.set("x-request-id", randomId());
    const limitMs = waitMs(request) + timeoutMs;
    return sendUntil(retries, request, () => sendOnce(request, limitMs, tokens, options.fetch ?? fetch));
  };
}

/** How long the server may hold the request. */
function waitMs(request: Request): number {
  // The `URL` of React Native is incomplete.
  return Number(/[?&]wait=(\d+)/.exec(request.url)?.[1] ?? 0) * 1_000;
}

/** Sends again after a pause, `left` times at most. */
async function sendUntil(left: number, request: Request, send: () => Promise<Response>, attempt = 1): Promise<Response> {
  try {
    return await send();
  } catch (error) {
    const ms = left > 0 && (await mayRepeat(error, request)) ? pauseAfter(error, attempt) : undefined;
    if (ms === undefined) throw error;
    await pause(ms, request.signal);
    return sendUntil(left - 1, request, send, attempt + 1);
  }
}

function pauseAfter(error: unknown, attempt: number): number | undefined {
  const [ms, jitterMs] = pauseOf(attempt, error instanceof ProblemError ? error.retryAfterS : undefined);
  return ms > MAX_RETRY_PAUSE_MS ? undefined : ms + Math.random() * jitterMs;
}

async function sendOnce(request: Request, limitMs: number, tokens: Tokens, send: Fetch): Promise<Response> {
  const attempt = (ask: () => Promise<Used>) => inTime(request.signal, limitMs, (signal) => sendWith(ask, request, send, signal));
  let received = await attempt(() => tokens.get());
  // The function may have had another token by then, which may be rejected, too.
  for (let left = 2; left > 0 && tokens.canRenew && isRejected(received); left -= 1) {
    const { used } = received;
    received = await attempt(() => tokens.renewed(used, limitMs));
  }
  return succeeded(request, received);
}

/** Whether another token may help: this one was not renewed for the request. */
function isRejected({ response, used }: Received): boolean {
  return response.status === 401 && !used.isRenewed;
}

async function sendWith(ask: () => Promise<Used>, request: Request, send: Fetch, signal: AbortSignal): Promise<Received> {
  const used = await ask();
  const attempt = request.clone();
  if (used.token !== undefined) authorize(attempt.headers, used.token);
  // Of a POST, a redirect would make a GET of another page, whose answer could look like a success.
  const init: RequestInit = { signal, redirect: "manual", ...withoutCache(attempt) };
  try {
    const response = await send(attempt, init);
    // The body, too, so that an answer that breaks off is no answer.
    return { response, body: await response.text(), used };
  } catch (error) {
    throw new NoAnswerError("network", error);
  }
}

/**
 * The tags of the protocol do what the browser's cache would do, and a page sees the 304. The `fetch` of React
 * Native would put the time into the query instead, which the server refuses. There it is a header; in a page, CORS
 * would have to allow that.
 */
function withoutCache(request: Request): RequestInit {
  if ("cache" in request) return { cache: "no-store" };
  (request as Request).headers.set("cache-control", "no-store");
  return {};
}

/** What is no object is not of Headmark: a captive portal and a broken proxy say 200, too. */
function succeeded(request: Request, { response, body }: Received): Response {
  const { ok, status, statusText, headers } = response;
  // A browser hides a redirect.
  if (status === 0) throw new NoAnswerError("malformed");
  if (!ok && status !== 304) throw new ProblemError(response, body);
  const isEmpty = status === 204 || (status === 304 && request.headers.has("if-none-match"));
  if (!(isEmpty || isObject(body))) throw new NoAnswerError("malformed");
  return new Response(isEmpty ? null : body, { status, statusText, headers });
}

function isObject(body: string): boolean {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** It names a request in logs and is no secret. So it needs no `crypto`, which React Native does not have. */
function randomId(): string {
  return Array.from({ length: 32 }, () => Math.floor(Math.random() * 16).toString(16)).join("");
}
