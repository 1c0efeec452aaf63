// Waiting that ends in time, or when the caller gives up.

import { NoAnswerError } from "./errors.js";
import { MAX_TIMER_MS } from "./pace.js";

/** The limit is for all that `run` does. */
export async function inTime<T>(caller: AbortSignal, limitMs: number, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const abort = () => controller.abort();
  const timer = setTimeout(abort, Math.min(limitMs, MAX_TIMER_MS));
  caller.addEventListener("abort", abort);
  // A token function cannot be aborted, so its end is not waited for.
  const aborted = new Promise<never>((_, reject) => {
    controller.signal.addEventListener("abort", () => reject(reasonOf(controller.signal)));
  });
  if (caller.aborted) abort();
  try {
    return await Promise.race([run(controller.signal), aborted]);
  } catch (error) {
    if (caller.aborted) throw reasonOf(caller);
    throw controller.signal.aborted ? new NoAnswerError("timeout", error) : error;
  } finally {
    clearTimeout(timer);
    caller.removeEventListener("abort", abort);
  }
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, ms);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
}

/** The signals of React Native have no reason. */
function reasonOf(signal: AbortSignal): unknown {
  return signal.reason ?? Object.assign(new Error("the request was aborted"), { name: "AbortError" });
}
