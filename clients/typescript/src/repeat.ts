// Which requests may be sent again. `clients/vectors/retries.json` has the cases.

import { NoAnswerError, ProblemError } from "./errors.js";
import { isRetryable } from "./pace.js";

/** Nothing changed, or the first request with this key still runs: every request may be sent again. */
const UNCHANGED: ReadonlySet<string> = new Set([
  "rate_limited",
  "overloaded",
  "store_unavailable",
  "shutting_down",
  "idempotency_in_progress",
]);

/** PUTs and DELETEs that the client sends once. The server refuses a repeat, or the repeat deletes newer data. */
const ONCE = [
  /^PUT .*\/v1\/users\/[^/]+\/follow-requests\/[^/]+$/,
  /^DELETE .*\/v1\/users\/[^/]+\/(badges|devices)\/[^/]+$/,
  /^DELETE .*\/v1\/(broadcasts|dots)\/[^/]+$/,
];

/** POSTs that take an `Idempotency-Key`. Other routes ignore it, so there it makes no repeat safe. */
const KEY_PATHS = [
  /\/v1\/badges\/(increment|retract)$/,
  /\/v1\/users\/[^/]+\/badges\/[^/]+\/(increment|retract)$/,
  /\/v1\/broadcasts\/[^/]+$/,
  /\/v1\/dots\/[^/]+\/light$/,
  /\/v1\/(notifications|posts)$/,
  /\/v1\/views\/items$/,
];

/** POSTs that change nothing when they are repeated: they read, join, or mark one thing. */
const REPEATABLE_PATHS = [
  /\/v1\/(badges|relations)\/query$/,
  /\/v1\/groups\/[^/]+\/members$/,
  /\/v1\/users\/[^/]+\/groups\/[^/]+\/messages\/[^/]+\/read$/,
  /\/v1\/users\/[^/]+\/notifications\/[^/]+\/(un)?read$/,
];

/** A message with its own id is stored once; a position is reached once. */
const REPEATABLE_FIELDS = ["client_id", "up_to", "up_to_seq"];

export async function mayRepeat(error: unknown, request: Request): Promise<boolean> {
  if (error instanceof ProblemError) {
    if (error.code !== null && UNCHANGED.has(error.code)) return true;
    if (!isRetryable(error.status)) return false;
  } else if (!(error instanceof NoAnswerError)) return false;
  return await isRepeatable(request);
}

/** Whether a POST to this URL takes an `Idempotency-Key`. */
export function takesKey(url: string): boolean {
  return KEY_PATHS.some((path) => path.test(url));
}

/** Whether a second request changes nothing that the first did not. PUT, PATCH and DELETE say how it is to be. */
async function isRepeatable(request: Request): Promise<boolean> {
  const [url = ""] = request.url.split("?");
  if (ONCE.some((line) => line.test(`${request.method} ${url}`))) return false;
  if (request.method !== "POST" || (request.headers.has("idempotency-key") && takesKey(url))) return true;
  if (REPEATABLE_PATHS.some((path) => path.test(url))) return true;
  try {
    const sent: unknown = await request.clone().json();
    return typeof sent === "object" && sent !== null && REPEATABLE_FIELDS.some((field) => field in sent);
  } catch {
    // No body, or none of Headmark's.
    return false;
  }
}
