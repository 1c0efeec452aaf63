// A Headmark whose answers a test gives by hand, and a clock that it turns by hand.

import { vi } from "vitest";
import { createHeadmark, type Headmark, type HeadmarkOptions } from "../src/client.js";
import type { Clock, Signal, Signals } from "../src/surroundings.js";
import { VirtualTime } from "./virtual-time.js";

export interface Pending {
  method: string;
  url: string;
  headers: Headers;
  body: string;
  keepalive: boolean;
  isAborted: boolean;
  answer(status: number, body?: unknown, headers?: Record<string, string>): Promise<void>;
  fail(): Promise<void>;
}

/** Lets promises settle; no time passes. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

export class Stub {
  readonly requests: Pending[] = [];
  readonly time = new VirtualTime();
  readonly clock: Clock = {
    now: () => this.time.now,
    random: () => 0,
    sleep: (ms, wake) => this.time.after(ms, wake),
  };
  #tell: ((signal: Signal) => void) | null = null;
  readonly signals: Signals = (listener) => {
    this.#tell = listener;
    return () => {
      this.#tell = null;
    };
  };
  readonly headmark: Headmark = this.client({});

  client(options: Pick<HeadmarkOptions, "token">): Headmark {
    return createHeadmark({ baseUrl: "http://headmark.test", fetch: (request, init) => this.#fetch(request, init), ...options });
  }

  get isWatched(): boolean {
    return this.#tell !== null;
  }

  newest(method: string): Pending | undefined {
    return this.requests.findLast((request) => request.method === method);
  }

  /** The newest request. Throws if there is none yet. */
  async last(): Promise<Pending> {
    await settle();
    const request = this.requests.at(-1);
    if (!request) throw new Error("no request was sent");
    return request;
  }

  async signal(signal: Signal): Promise<void> {
    this.#tell?.(signal);
    await settle();
  }

  async pass(ms: number): Promise<void> {
    this.time.runUntil(this.time.now + ms);
    await settle();
  }

  async #fetch(request: Request, init?: RequestInit): Promise<Response> {
    const { method, url, headers, keepalive } = request;
    const body = await request.text();
    return new Promise((resolve, reject) => {
      const pending: Pending = {
        method,
        url: url.replace("http://headmark.test", ""),
        headers,
        body,
        keepalive,
        isAborted: false,
        answer: (status, answer, extra = {}) => {
          const type = { "content-type": status < 400 ? "application/json" : "application/problem+json" };
          resolve(new Response(answer === undefined ? null : JSON.stringify(answer), { status, headers: { ...type, ...extra } }));
          return settle();
        },
        fail: () => {
          reject(new TypeError("fetch failed"));
          return settle();
        },
      };
      init?.signal?.addEventListener("abort", () => {
        pending.isAborted = true;
        reject(new DOMException("aborted", "AbortError"));
      });
      this.requests.push(pending);
    });
  }
}

/** A token function that throws `error` while there is one. */
export function tokenThat(fails: { error: Error | null }): () => string {
  return () => {
    if (fails.error) throw fails.error;
    return "secret";
  };
}

/** What is logged of the app's errors. */
export function catchReported(): unknown[] {
  const reported: unknown[] = [];
  vi.spyOn(console, "error").mockImplementation((error: unknown) => reported.push(error));
  return reported;
}

export function summary(revision: number, unread: number): object {
  return {
    user_id: "42",
    epoch: "e1",
    revision,
    shared_revision: 0,
    degraded: false,
    total: unread,
    counters: { mention: { unread, head: unread } },
    broadcasts: {},
    dots: {},
    feed: { unread: 0 },
    chats: { unread: 0, mentions: 0, groups: 0, directs: 0 },
    notifications: {},
  };
}
