// What a phone sends and gets: every request, from its start to its answer.

import type { Fetch } from "../session.js";
import { Store } from "../store.js";

export interface Entry {
  id: number;
  /** In a product the backend sends these: a phone's token does not open them. */
  isBackend: boolean;
  method: string;
  path: string;
  /** Seconds that the server may hold it; 0: it answers at once. */
  waitS: number;
  startedAt: number;
  /** Null while it is on its way. */
  end: { status: number | "stopped" | "no answer"; tookMs: number; revision: number | null; tag: string | null } | null;
}

const MAX_ENTRIES = 30;
const POLL = /\/badges(\?|$)/;
/** More than the second that lies between two polls. */
const QUIET_MS = 2_000;

export class RequestLog {
  /** The newest first. */
  readonly entries = new Store<Entry[]>([]);
  readonly #onAnswer = new Set<() => void>();
  #next = 1;

  /** Whether no poll was sent or held for a while: the poller keeps to a longer pace. */
  get isQuiet(): boolean {
    const poll = this.#lastPoll;
    return poll?.end != null && performance.now() - poll.startedAt - poll.end.tookMs > QUIET_MS;
  }

  get #lastPoll(): Entry | undefined {
    return this.entries.value.find(({ method, path }) => method === "GET" && POLL.test(path));
  }

  /** Calls the listener after each answer of the server: 5xx may be the proxy's, in its absence. */
  onAnswer(listener: () => void): () => void {
    this.#onAnswer.add(listener);
    return () => this.#onAnswer.delete(listener);
  }

  /** A `fetch` whose requests are listed. */
  fetch(isBackend: boolean): Fetch {
    return async (request, init) => {
      const entry = this.#begin(request, isBackend);
      try {
        const response = await fetch(request, init);
        // The body is read to its end here, as by the client, so that the time is that of the whole answer.
        const text = await response.clone().text();
        this.#end(entry, response.status, revisionOf(text), response.headers.get("etag"));
        if (response.status < 500) for (const listener of this.#onAnswer) listener();
        return response;
      } catch (error) {
        this.#end(entry, init?.signal?.aborted ? "stopped" : "no answer", null, null);
        throw error;
      }
    };
  }

  #begin(request: Request, isBackend: boolean): Entry {
    const url = new URL(request.url);
    const entry: Entry = {
      id: this.#next,
      isBackend,
      method: request.method,
      path: url.pathname + url.search,
      waitS: Number(url.searchParams.get("wait") ?? 0),
      startedAt: performance.now(),
      end: null,
    };
    this.#next += 1;
    this.entries.set([entry, ...this.entries.value].slice(0, MAX_ENTRIES));
    return entry;
  }

  #end(begun: Entry, status: NonNullable<Entry["end"]>["status"], revision: number | null, tag: string | null): void {
    const end = { status, tookMs: performance.now() - begun.startedAt, revision, tag };
    this.entries.set(this.entries.value.map((entry) => (entry.id === begun.id ? { ...entry, end } : entry)));
  }
}

/** Of a body that has one. */
function revisionOf(text: string): number | null {
  try {
    const body: unknown = JSON.parse(text);
    const revision = typeof body === "object" && body !== null && "revision" in body ? body.revision : null;
    return typeof revision === "number" ? revision : null;
  } catch {
    // A 304 and a 204 have no body; what a proxy answers is not JSON.
    return null;
  }
}
