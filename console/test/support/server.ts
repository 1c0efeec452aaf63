// The real server: the binary that HEADMARK_BIN names, on either tier, with data of its own.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { createHeadmark, type Headmark } from "@headmark/client";

export type Tier = "embedded" | "server";

/** The second one where `scripts/engines.sh with` has started its engines. */
export const TIERS: Tier[] = process.env.HEADMARK_TEST_POSTGRES ? ["embedded", "server"] : ["embedded"];

export const SECRET = "a-service-key-of-the-console";

interface Options {
  tier?: Tier;
  /** Whether callers need the key. */
  isOpen?: boolean;
  settings?: Record<string, string>;
}

export class Server {
  baseUrl = "";
  #child: ChildProcess | null = null;
  /** What it wrote to its standard output at its start. */
  welcome = "";
  readonly #folder: string;
  readonly #settings: Record<string, string>;
  readonly #isOpen: boolean;

  private constructor(folder: string, settings: Record<string, string>, isOpen: boolean) {
    this.#folder = folder;
    this.#settings = settings;
    this.#isOpen = isOpen;
  }

  static async start({ tier = "embedded", isOpen = true, settings = {} }: Options = {}): Promise<Server> {
    const folder = await mkdtemp(join(tmpdir(), "headmark-console-"));
    const stores = tier === "server" ? await storesOf(folder) : {};
    const server = new Server(folder, { ...stores, ...settings }, isOpen);
    await server.start();
    return server;
  }

  get console(): string {
    return `${this.baseUrl}/console/`;
  }

  /** A backend's client. */
  get backend(): Headmark {
    return createHeadmark({ baseUrl: this.baseUrl, ...(this.#isOpen ? {} : { token: SECRET }) });
  }

  /** Again at the same address, once it has one. */
  async start(changed: Record<string, string> = {}): Promise<void> {
    const path = process.env.HEADMARK_BIN;
    if (!path) throw new Error("set HEADMARK_BIN to the headmark binary, such as target/debug/headmark");
    const env = {
      PATH: process.env.PATH,
      HEADMARK_LISTEN: this.baseUrl === "" ? "127.0.0.1:0" : new URL(this.baseUrl).host,
      HEADMARK_LOG: "error",
      HEADMARK_DRAIN_IDLE_MS: "0",
      HEADMARK_DRAIN_TIMEOUT_MS: "1000",
      ...(this.#isOpen ? {} : { HEADMARK_SERVICE_KEYS: `console:${SECRET}` }),
      ...this.#settings,
      ...changed,
    };
    const child = spawn(resolve(path), [], { cwd: this.#folder, env, stdio: ["ignore", "pipe", "inherit"] });
    this.#child = child;
    this.welcome = "";
    for await (const line of createInterface({ input: child.stdout })) {
      this.welcome += `${line}\n`;
      const listening = /listening on (http:\S+)/.exec(line);
      if (listening?.[1]) this.baseUrl = listening[1];
      if (line.startsWith("Try it")) {
        child.stdout.resume();
        return;
      }
    }
    throw new Error("the server did not start");
  }

  /** A crash: connections break off. */
  async kill(): Promise<void> {
    await this.stop("SIGKILL");
  }

  /** It keeps its connections and answers nothing, until `wake`. */
  hang(): void {
    this.#child?.kill("SIGSTOP");
  }

  wake(): void {
    this.#child?.kill("SIGCONT");
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (!child || child.exitCode !== null) return;
    const ended = new Promise((ends) => child.once("exit", ends));
    child.kill(signal);
    await ended;
  }

  async remove(): Promise<void> {
    await this.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** A database and a part of Redis that no other test uses; the engines end with the run. */
async function storesOf(folder: string): Promise<Record<string, string>> {
  const { HEADMARK_TEST_POSTGRES: postgres = "", HEADMARK_TEST_REDIS: redis = "", HEADMARK_PG_BIN: bin = "" } = process.env;
  const url = new URL(postgres);
  const database = folder.replace(/.*-/, "console_").toLowerCase();
  // The password is not an argument: any account of the machine could read it.
  const env = {
    PATH: `${bin}:${process.env.PATH}`,
    PGHOST: url.hostname,
    PGPORT: url.port,
    PGUSER: decodeURIComponent(url.username),
    PGPASSWORD: decodeURIComponent(url.password),
    PGDATABASE: url.pathname.slice(1),
  };
  await promisify(execFile)("psql", ["--quiet", "--command", `create database ${database}`], { env });
  url.pathname = database;
  return { DATABASE_URL: url.href, REDIS_URL: redis, HEADMARK_CACHE_PREFIX: `${database}:` };
}
