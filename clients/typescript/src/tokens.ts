// The token of a client's requests, and its renewal after a 401.

import { inTime } from "./deadline.js";

/** A token, or a function that returns one. After a 401 it is called once with `true`: get a new one. */
export type Token = string | ((isRejected: boolean) => string | Promise<string>);

/** What a request is sent with. */
export interface Used {
  token: string | undefined;
  /** It came of a renewal for this request. */
  isRenewed: boolean;
}

export class Tokens {
  readonly #ask: Exclude<Token, string> | null;
  /** The newest that is known. */
  #current: string | undefined;
  #renewal: Promise<string> | null = null;
  #renewals = 0;

  constructor(token: Token | undefined) {
    this.#ask = typeof token === "function" ? token : null;
    this.#current = typeof token === "string" ? token : undefined;
  }

  get canRenew(): boolean {
    return this.#ask !== null;
  }

  /** What a request sends first. */
  async get(): Promise<Used> {
    if (!this.#ask) return { token: this.#current, isRenewed: false };
    const renewals = this.#renewals;
    const token = await this.#ask(false);
    // Asked for before a renewal, it may be the rejected one.
    if (renewals === this.#renewals) this.#current = token;
    return { token, isRenewed: false };
  }

  /** What it sends after a 401: the newest token, or a new one. Requests that are rejected together share one renewal. */
  async renewed(rejected: string | undefined, limitMs: number): Promise<Used> {
    const ask = this.#ask;
    if (!ask || (!this.#renewal && rejected !== this.#current)) return { token: this.#current, isRenewed: false };
    this.#renewal ??= this.#renew(ask, limitMs);
    return { token: await this.#renewal, isRenewed: true };
  }

  /** In time, so that a renewal that hangs does not hold those that come later. */
  async #renew(ask: Exclude<Token, string>, limitMs: number): Promise<string> {
    try {
      const token = await inTime(new AbortController().signal, limitMs, async () => await ask(true));
      this.#current = token;
      this.#renewals += 1;
      return token;
    } finally {
      this.#renewal = null;
    }
  }
}

/**
 * Checks the token first: the error of `Headers` would tell it, and errors are logged. A file that has a token often
 * ends with a newline, which is no part of it.
 */
export function authorize(headers: Headers, token: string): void {
  const sent = token.trim();
  if (/[^ -~]/.test(sent)) throw new TypeError("the token has a character that no header can have");
  headers.set("authorization", `Bearer ${sent}`);
}
