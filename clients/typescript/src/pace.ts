// How long to wait before the next request: what both state machines share.

/** No machine sends two polls within this time. */
export const MIN_GAP_MS = 1_000;
/** The pace until the server names one. */
export const DEFAULT_INTERVAL_MS = 30_000;
/** A timer of a browser or of Node that is to last longer ends at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;
const BACKOFF_MS = 1_000;
const BACKOFF_MAX_MS = 60_000;
/** A longer `Retry-After` is taken as this. */
const RETRY_AFTER_MAX_S = 3_600;

/** 1 s, 2 s, 4 s … 60 s. */
function backoffMs(failures: number): number {
  return Math.min(BACKOFF_MS * 2 ** Math.min(failures - 1, 10), BACKOFF_MAX_MS);
}

/** 0: the server asks for no pause. */
export function retryAfterMs(retryAfterS: number | undefined): number {
  return Math.min(Math.max(retryAfterS ?? 0, 0), RETRY_AFTER_MAX_S) * 1_000;
}

/**
 * The pause after failures in a row, and its random part. A server that asks for no pause, or always for the same one,
 * gets the backoff all the same. Clients that lost a node together come back over a time as long as the backoff.
 */
export function pauseOf(failures: number, retryAfterS?: number): [ms: number, jitterMs: number] {
  const backoff = backoffMs(failures);
  const ms = Math.max(backoff, retryAfterMs(retryAfterS));
  return [ms, Math.max(backoff, jitterOf(ms))];
}

/** The random part of any other sleep. */
export function jitterOf(ms: number): number {
  return Math.floor(ms / 5);
}

/** Whether the same request may succeed later. Every other error needs the app. */
export function isRetryable(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

/** Whether an answer without news came well before the wait was over: then the server does not hold requests. */
export function isEarly(elapsedMs: number, waitS: number): boolean {
  return elapsedMs < waitS * 900;
}
