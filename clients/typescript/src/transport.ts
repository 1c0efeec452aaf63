// One request from start to end: credentials, a request id, a time limit, retries, and errors as
// exceptions. openapi-fetch calls this instead of `fetch`.

import { NoAnswerError, ProblemError } from "./errors.js";
import { backoffMs, jitterMs, retryAfterMs } from "./pace.js";
import { mayRepeat } from "./repeat.js";

/** A token, or a function that returns one. After a 401 it is called once with `true`: get a new one. */
export type Token = string | ((isRejected: boolean) => string | Promise<string>);

export interface TransportOptions {
  /** A user's token or a service key. Without it the server must run open. */
  token?: Token;
  /** How long an answer may take, its body included, beyond the `wait` of the request; by default 10,000. */
  timeoutMs?: number;
  /** How often a request is sent again, where that is safe; by default 2. */
  retries?: number;
  /** By default the global `fetch`. */
  fetch?: (request: Request, init?: RequestInit) => Promise<Response>;
}

/** What one call may set differently. */
export type CallOptions = Pick<TransportOptions, "timeoutMs" | "retries">;

/** A server that asks for a longer pause is not tried again: the caller knows better what to do. */
const MAX_RETRY_PAUSE_MS = 10_000;

export function createTransport(options: TransportOptions): (request: Request) => Promise<Response> {
  return (request) => {
    // openapi-fetch puts the options of a call that `Request` does not know onto the request.
    const { timeoutMs = options.timeoutMs ?? 10_000, retries = options.retries ?? 2 }: CallOptions = request as CallOptions;
    if (!request.headers.has("x-request-id")) request.headers.set("x-request-id", randomId());
    const limitMs = waitMs(request) + timeoutMs;
    return sendUntil(retries, request, () => sendOnce(request, limitMs, options));
  };
}

/** How long the server may hold the request. */
function waitMs(request: Request): number {
  const waitS = Number(new URL(request.url).searchParams.get("wait"));
  return waitS > 0 ? waitS * 1_000 : 0;
}

/** Sends again after a pause, `left` times at most. */
async function sendUntil(left: number, request: Request, send: () => Promise<Response>, attempt = 1): Promise<Response> {
  try {
    return await send();
  } catch (error) {
    const pauseMs = left > 0 && (await mayRepeat(error, request)) ? pauseAfter(error, attempt) : undefined;
    if (pauseMs === undefined) throw error;
    await pause(pauseMs, request.signal);
    return sendUntil(left - 1, request, send, attempt + 1);
  }
}

function pauseAfter(error: unknown, attempt: number): number | undefined {
  const asked = error instanceof ProblemError ? retryAfterMs(error.retryAfterS) : undefined;
  const pauseMs = asked ?? backoffMs(attempt);
  return pauseMs > MAX_RETRY_PAUSE_MS ? undefined : pauseMs + Math.random() * jitterMs(pauseMs);
}

async function sendOnce(request: Request, limitMs: number, options: TransportOptions): Promise<Response> {
  const response = await authorized(request, limitMs, options, false);
  if (response.status !== 401 || typeof options.token !== "function") return succeeded(response);
  return succeeded(await authorized(request, limitMs, options, true));
}

function authorized(request: Request, limitMs: number, options: TransportOptions, isRejected: boolean): Promise<Response> {
  const { token, fetch: send = fetch } = options;
  return inTime(request.signal, limitMs, async (signal) => {
    const bearer = typeof token === "function" ? await called(token, isRejected) : token;
    const attempt = request.clone();
    if (bearer !== undefined) attempt.headers.set("authorization", `Bearer ${bearer}`);
    return received(() => send(attempt, { signal, cache: "no-store" }));
  });
}

/** The client takes a `SyntaxError` for an answer that is not JSON: that of a token function must not look like it. */
async function called(token: Exclude<Token, string>, isRejected: boolean): Promise<string> {
  try {
    return await token(isRejected);
  } catch (error) {
    throw error instanceof SyntaxError ? new Error("the token function failed", { cause: error }) : error;
  }
}

/**
 * Reads the body, too, so that an answer that breaks off is no answer. The request says `no-store`:
 * the tags of the protocol do what the browser's cache would do, and a page sees the 304.
 */
async function received(send: () => Promise<Response>): Promise<Response> {
  try {
    const response = await send();
    const { status, statusText, headers } = response;
    const body = await response.arrayBuffer();
    return new Response(body.byteLength > 0 ? body : null, { status, statusText, headers });
  } catch (error) {
    throw new NoAnswerError("network", error);
  }
}

async function succeeded(response: Response): Promise<Response> {
  if (response.ok || response.status === 304) return response;
  throw new ProblemError(response, await response.text());
}

/** The limit is for all of it: the token, the answer and its body. */
async function inTime<T>(caller: AbortSignal, limitMs: number, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const abort = () => controller.abort();
  const timer = setTimeout(abort, limitMs);
  caller.addEventListener("abort", abort);
  // A token function cannot be aborted, so its end is not waited for.
  const aborted = new Promise<never>((_, reject) => {
    controller.signal.addEventListener("abort", () => reject(controller.signal.reason));
  });
  if (caller.aborted) abort();
  try {
    return await Promise.race([run(controller.signal), aborted]);
  } catch (error) {
    if (caller.aborted) throw caller.reason;
    throw controller.signal.aborted ? new NoAnswerError("timeout", error) : error;
  } finally {
    clearTimeout(timer);
    caller.removeEventListener("abort", abort);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, ms);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
}

/** `crypto.randomUUID` exists on secure pages only. */
function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
