// The real server: the binary that HEADMARK_BIN names, on either tier, with data of its own.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { createHeadmark, type Headmark } from "../src/client.js";
import { type Stores, storesOf, type Tier } from "./stores.js";

const SERVICE_SECRET = "a-service-key-of-the-tests";
const JWT_SECRET = "a secret of the tests, of 32 bytes and more";

function binary(): string {
  const path = process.env.HEADMARK_BIN;
  if (!path) throw new Error("set HEADMARK_BIN to the headmark binary, such as target/debug/headmark");
  return resolve(path);
}

/** The token of an end user. */
export function userToken(user: string, expiresInS: number): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part({ sub: user, exp: Math.floor(Date.now() / 1_000) + expiresInS })}`;
  return `${signed}.${createHmac("sha256", JWT_SECRET).update(signed).digest("base64url")}`;
}

export class Server {
  #child: ChildProcess | null = null;
  /** Where it listens, empty while it does not: another test's server may get its port. Each start has another. */
  baseUrl = "";
  readonly #folder: string;
  readonly #stores: Stores;

  private constructor(folder: string, stores: Stores) {
    this.#folder = folder;
    this.#stores = stores;
  }

  static async start(tier: Tier): Promise<Server> {
    const folder = await mkdtemp(join(tmpdir(), "headmark-client-"));
    const server = new Server(folder, await storesOf(tier, folder));
    await server.start();
    return server;
  }

  /** A backend's client, past the proxy. */
  get service(): Headmark {
    return createHeadmark({ baseUrl: this.baseUrl, token: SERVICE_SECRET });
  }

  /** How many polls it holds now. */
  async waitingPolls(): Promise<number> {
    const metrics = await (await fetch(`${this.baseUrl}/metrics`)).text();
    return Number(/^headmark_polls_waiting (\d+)/m.exec(metrics)?.[1]);
  }

  async start(): Promise<void> {
    const settings = {
      PATH: process.env.PATH,
      ...this.#stores.settings,
      HEADMARK_SERVICE_KEYS: `tests:${SERVICE_SECRET}`,
      HEADMARK_JWT_SECRET: JWT_SECRET,
      HEADMARK_LOG: "error",
      HEADMARK_POLL_INTERVAL: "1",
      HEADMARK_DRAIN_IDLE_MS: "0",
      HEADMARK_DRAIN_TIMEOUT_MS: "2000",
    };
    const args = ["--listen", "127.0.0.1:0"];
    const child = spawn(binary(), args, { env: settings, stdio: ["ignore", "pipe", "inherit"] });
    this.#child = child;
    for await (const line of createInterface({ input: child.stdout })) {
      const listening = /listening on (http:\S+)/.exec(line);
      if (!listening?.[1]) continue;
      this.baseUrl = listening[1];
      child.stdout.resume();
      return;
    }
    throw new Error("the server did not start");
  }

  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    this.baseUrl = "";
    if (!child || child.exitCode !== null) return;
    const ended = new Promise((ends) => child.once("exit", ends));
    child.kill("SIGCONT");
    child.kill("SIGTERM");
    await ended;
  }

  async remove(): Promise<void> {
    await this.stop();
    await this.#stores.remove();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** The process hangs: its connections stay open, and nothing is answered. */
  pause(): void {
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  async backUp(): Promise<void> {
    await this.stop();
    await this.#stores.backUp();
    await this.start();
  }

  /** As docs/operations/backup.md says: stop, put the data back, renew the epoch, start. */
  async restore(): Promise<void> {
    await this.stop();
    await this.#stores.restore();
    await promisify(execFile)(binary(), ["epoch", "--renew"], { env: this.#stores.settings });
    await this.start();
  }
}
