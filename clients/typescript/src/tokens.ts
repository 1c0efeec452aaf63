// The token of a client's requests, and its renewal after a 401. A request is sent with what the function gave for it,
// or with the result of renewing that token. So a function may give each request the token of a user of its own.

import { inTime } from "./deadline.js";

/**
 * A token, or a function that returns one, such as that of the user whose request it is (`AsyncLocalStorage`). After a
 * 401 it is called again, and where it gives the same token, with `true`: get a new one.
 */
export type Token = string | ((isRejected: boolean) => string | Promise<string>);

type Ask = Exclude<Token, string>;

/** What a request is sent with. */
export interface Used {
  token: string | undefined;
  /** How many renewals there had been when the function was asked. */
  renewals: number;
  /** It came of a renewal for this request. */
  isRenewed: boolean;
}

/** So many renewals are remembered, for requests that are rejected late. */
const MAX_REMEMBERED = 32;

export class Tokens {
  readonly #ask: Ask | null;
  readonly #fixed: string | undefined;
  /** By the rejected token. Each ends in the time of an attempt. */
  readonly #running = new Map<string | undefined, Promise<string>>();
  /** The last that ended, by the rejected token. */
  readonly #renewed = new Map<string | undefined, Used>();
  #renewals = 0;

  constructor(token: Token | undefined) {
    this.#ask = typeof token === "function" ? token : null;
    this.#fixed = typeof token === "string" ? token : undefined;
  }

  get canRenew(): boolean {
    return this.#ask !== null;
  }

  /** What a request sends first. */
  async get(): Promise<Used> {
    // Counted before: a renewal that ends while the function runs is later than its token.
    const renewals = this.#renewals;
    const token = this.#ask ? await this.#ask(false) : this.#fixed;
    return { token, renewals, isRenewed: false };
  }

  /** What it sends after a 401: another token, or a new one. Requests that had the same token share its renewal. */
  async renewed(rejected: Used, limitMs: number): Promise<Used> {
    // The function may have another one by now, for this request.
    const given = await this.get();
    if (!this.#ask || given.token !== rejected.token) return given;
    const meanwhile = this.#renewed.get(rejected.token);
    if (meanwhile && meanwhile.renewals > rejected.renewals) return meanwhile;
    const renewal = this.#running.get(rejected.token) ?? this.#renew(this.#ask, rejected.token, limitMs);
    return { token: await renewal, renewals: this.#renewals, isRenewed: true };
  }

  #renew(ask: Ask, rejected: string | undefined, limitMs: number): Promise<string> {
    // In time, so that a renewal that hangs does not hold those that come later.
    const renewal = inTime(new AbortController().signal, limitMs, async () => await ask(true))
      .then((token) => this.#remember(rejected, token))
      .finally(() => this.#running.delete(rejected));
    this.#running.set(rejected, renewal);
    return renewal;
  }

  #remember(rejected: string | undefined, token: string): string {
    this.#renewals += 1;
    this.#renewed.delete(rejected);
    this.#renewed.set(rejected, { token, renewals: this.#renewals, isRenewed: false });
    const [oldest] = this.#renewed.keys();
    if (this.#renewed.size > MAX_REMEMBERED) this.#renewed.delete(oldest);
    return token;
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
