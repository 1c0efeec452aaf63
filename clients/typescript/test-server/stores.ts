// Where a server of the tests keeps its data, on either tier, and how that is backed up.

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

export type Tier = "embedded" | "server";

/** The second one where `scripts/engines.sh with` has started its engines. */
export const TIERS: Tier[] = process.env.HEADMARK_TEST_POSTGRES ? ["embedded", "server"] : ["embedded"];

/** Back up and restore while the server is stopped. */
export interface Stores {
  readonly settings: Record<string, string>;
  backUp(): Promise<void>;
  restore(): Promise<void>;
  remove(): Promise<void>;
}

export async function storesOf(tier: Tier, folder: string): Promise<Stores> {
  return tier === "server" ? await engines() : files(folder);
}

function files(folder: string): Stores {
  const [data, backup] = [join(folder, "data"), join(folder, "backup")];
  return {
    settings: { HEADMARK_DATA_DIR: data },
    backUp: () => cp(data, backup, { recursive: true }),
    restore: async () => {
      await rm(data, { recursive: true });
      await cp(backup, data, { recursive: true });
    },
    // They go with the folder.
    remove: () => Promise.resolve(),
  };
}

/** A database and a part of Redis that no other test uses. */
async function engines(): Promise<Stores> {
  const { HEADMARK_TEST_POSTGRES = "", HEADMARK_TEST_REDIS = "" } = process.env;
  const name = `client_${randomBytes(6).toString("hex")}`;
  const url = new URL(HEADMARK_TEST_POSTGRES);
  url.pathname = name;
  let restores = 0;
  await run(`create database ${name}`);
  return {
    get settings() {
      // Another prefix after each restore: an empty Redis, as far as the server sees.
      const prefix = `${name}_${restores}:`;
      return { DATABASE_URL: url.href, REDIS_URL: HEADMARK_TEST_REDIS, HEADMARK_CACHE_PREFIX: prefix };
    },
    backUp: () => run(`create database ${name}_backup template ${name}`),
    restore: async () => {
      restores += 1;
      await run(`drop database ${name} with (force)`);
      await run(`create database ${name} template ${name}_backup`);
    },
    remove: async () => {
      for (const each of [name, `${name}_backup`]) await run(`drop database if exists ${each} with (force)`);
    },
  };
}

async function run(statement: string): Promise<void> {
  const { HEADMARK_TEST_POSTGRES = "", HEADMARK_PG_BIN = "", PATH } = process.env;
  const url = new URL(HEADMARK_TEST_POSTGRES);
  // The password is not an argument: any account of the machine could read it.
  const env = {
    PATH: `${HEADMARK_PG_BIN}:${PATH}`,
    PGHOST: url.hostname,
    PGPORT: url.port,
    PGUSER: decodeURIComponent(url.username),
    PGPASSWORD: decodeURIComponent(url.password),
    PGDATABASE: url.pathname.slice(1),
  };
  await promisify(execFile)("psql", ["--quiet", "--no-psqlrc", "--command", statement], { env });
}
