// What the runtimes take from outside: time, chance, and whether the page is visible and online.
// Tests bring their own.

import { MAX_TIMER_MS } from "./pace.js";

export interface Clock {
  /** Milliseconds that do not go back. */
  now(): number;
  /** From 0 to 1. */
  random(): number;
  /** Calls `wake` after `ms`; the result cancels it. */
  sleep(ms: number, wake: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Math.round(performance.now()),
  random: Math.random,
  sleep: (ms, wake) => {
    const timer = setTimeout(wake, Math.min(ms, MAX_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

export type Signal = "hidden" | "visible" | "offline" | "online";

/** Calls the listener with the present state, and whenever it changes; the result ends that. */
export type Signals = (listener: (signal: Signal) => void) => () => void;

/** The signals of a web page; elsewhere there are none. */
export const pageSignals: Signals = (listener) => {
  if (typeof document === "undefined" || typeof window === "undefined") return () => {};
  const tellVisible = () => listener(document.visibilityState === "hidden" ? "hidden" : "visible");
  const tellOnline = () => listener(navigator.onLine === false ? "offline" : "online");
  document.addEventListener("visibilitychange", tellVisible);
  window.addEventListener("online", tellOnline);
  window.addEventListener("offline", tellOnline);
  tellVisible();
  tellOnline();
  return () => {
    document.removeEventListener("visibilitychange", tellVisible);
    window.removeEventListener("online", tellOnline);
    window.removeEventListener("offline", tellOnline);
  };
};

/** Of the signals, those about the network. */
export const onlineSignals: Signals = (listener) =>
  pageSignals((signal) => {
    if (signal === "online" || signal === "offline") listener(signal);
  });

const LOOPBACK = /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/i;

/** Whether a server is on this machine: it can be reached without a network. */
export function isLoopback(baseUrl: string): boolean {
  // The `URL` of React Native is incomplete. A URL without a host is of the server of the page.
  const [, host = globalThis.location?.hostname] = /^(?:\w+:)?\/\/(\[[^\]]*\]|[^/?#:]*)/.exec(baseUrl) ?? [];
  return host !== undefined && LOOPBACK.test(host);
}
