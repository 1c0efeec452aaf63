// Who the console is for the server: nobody on an open server, else the service key that was typed in.
// The page alone has it: what a browser stores comes back with a closed tab, and other pages of
// this server could read it.

import { createHeadmark, type Headmark, NoAnswerError, ProblemError } from "@headmark/client";
import { Store } from "./store.js";

export type Access =
  | { state: "asking" }
  /** The server does not answer, or says that it cannot now. */
  | { state: "away"; reason: string }
  /** `key` and `reason`: which key was not taken, and why; null if there was none. */
  | { state: "key_needed"; key: string | null; reason: string | null }
  | { state: "ready"; key: string | null };

export type Fetch = (request: Request, init?: RequestInit) => Promise<Response>;

const RETRY_MS = 2_000;

export class Session {
  readonly access = new Store<Access>({ state: "asking" });
  /** Whose phones somebody agreed to start, as the address names them. */
  startedUsers: string | null = null;
  #key: string | null = null;
  #retry: ReturnType<typeof setTimeout> | undefined;
  /** Answers to an older question are dropped. */
  #asked = 0;

  /** A client of this page's server. `send` sees every request. */
  headmark(send: Fetch = fetch): Headmark {
    const key = this.#key;
    return createHeadmark({
      baseUrl: location.origin,
      ...(key === null ? {} : { token: key }),
      fetch: async (request, init) => {
        const response = await send(request, init);
        // A late answer may be about the key before.
        if (response.status === 401 && key === this.#key) this.#refused();
        return response;
      },
    });
  }

  /** A request to a route that is not part of the API, with the key. */
  async probe(path: string, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = this.#key === null ? {} : { authorization: `Bearer ${this.#key}` };
    return await fetch(path, { headers, signal, cache: "no-store" });
  }

  use(key: string): void {
    this.#key = key;
    this.start();
  }

  forget(): void {
    this.#key = null;
    this.startedUsers = null;
    // At once: what is on the screen is the old key's, and polls with it, until the server has answered.
    this.access.set({ state: "asking" });
    this.start();
  }

  /** Asks the server whether it takes this key, or none, with a request that changes nothing. */
  start(): void {
    clearTimeout(this.#retry);
    this.#asked += 1;
    const asked = this.#asked;
    const settle = (access: Access) => {
      if (asked !== this.#asked) return;
      this.access.set(access);
      if (access.state === "away") this.#retry = setTimeout(() => this.start(), RETRY_MS);
    };
    this.#ask().then(settle, (error: unknown) => settle({ state: "away", reason: String(error) }));
  }

  async #ask(): Promise<Access> {
    const key = this.#key;
    const client = createHeadmark({
      baseUrl: location.origin,
      ...(key === null ? {} : { token: key }),
      retries: 0,
      timeoutMs: 5_000,
    });
    try {
      await client.POST("/v1/badges/query", { body: { user_ids: ["1"], include: ["counters"] } });
      return { state: "ready", key };
    } catch (error) {
      return accessAfter(error, key);
    }
  }

  #refused(): void {
    if (this.access.value.state === "ready") this.access.set(keyNeeded(this.#key, refusalOf(this.#key)));
  }
}

function accessAfter(error: unknown, key: string | null): Access {
  if (error instanceof ProblemError) {
    if (error.status === 401) return keyNeeded(key, refusalOf(key));
    if (error.status === 403)
      return keyNeeded(key, "This is not a service key. The token of a user opens only that user's routes.");
    // About the user in the question. So the server has taken the key.
    if (error.code === "erased") return { state: "ready", key };
    return { state: "away", reason: error.message };
  }
  if (error instanceof NoAnswerError) return { state: "away", reason: "The server does not answer." };
  // A key with a line break or the like cannot be sent at all.
  return keyNeeded(key, "A key cannot contain such characters.");
}

function keyNeeded(key: string | null, reason: string | null): Access {
  return { state: "key_needed", key, reason };
}

function refusalOf(key: string | null): string | null {
  if (key === null) return null;
  const hint = key.includes(":") ? " Leave out its name: type the part after the colon." : "";
  return `The server refused this key.${hint}`;
}
