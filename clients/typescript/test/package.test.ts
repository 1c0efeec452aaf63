// What is published: types that follow the OpenAPI document, a size that is stated, a lock file
// that works everywhere.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "vite";
import { expect, test } from "vitest";
// @ts-expect-error: a script without types
import { generate } from "../scripts/generate.mjs";

const file = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const read = (path: string) => readFileSync(file(path), "utf8");

test("the types are those of the OpenAPI document", async () => {
  expect((await generate()) === read("src/generated/openapi.ts"), "run `npm run generate`").toBe(true);
});

/** The bytes that an entry adds to a page, minified and compressed; React itself aside. */
async function gzippedBytes(entry: string): Promise<number> {
  const result = await build({
    configFile: false,
    logLevel: "silent",
    build: {
      write: false,
      minify: true,
      modulePreload: false,
      rollupOptions: { input: file(entry), external: ["react"], preserveEntrySignatures: "strict" },
    },
  });
  const outputs = [result].flat().flatMap((part) => ("output" in part ? part.output : []));
  return gzipSync(outputs.map((output) => ("code" in output ? output.code : "")).join("")).length;
}

test("the size is the one that the README states", async () => {
  const stated = /(\d+\.\d) kB gzipped,\s+(\d+\.\d) kB more with the React hook/.exec(read("README.md"));
  const [all, hook] = [await gzippedBytes("src/index.ts"), await gzippedBytes("src/react.ts")];
  // Another zlib may differ by some bytes.
  expect(Math.abs(all / 1_000 - Number(stated?.[1]))).toBeLessThan(0.15);
  expect(Math.abs(hook / 1_000 - Number(stated?.[2]))).toBeLessThan(0.15);
});

test("the README shows the examples, which compile", () => {
  const shown = [...read("README.md").matchAll(/<!-- (\S+) -->\n```\w+\n(.*?)```/gs)];
  expect(shown.map(([, path]) => path)).toEqual(["examples/badge.tsx", "examples/inbox.ts", "examples/request.ts"]);
  for (const [, path, code] of shown) expect(code).toBe(read(path ?? ""));
});

test("the only dependency at run time is openapi-fetch, and every version is exact", () => {
  const { dependencies, devDependencies } = JSON.parse(read("package.json")) as Record<string, Record<string, string>>;
  expect(Object.keys(dependencies ?? {})).toEqual(["openapi-fetch"]);
  expect(Object.values({ ...dependencies, ...devDependencies }).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual(
    [],
  );
});

test("the lock file names no registry", () => {
  expect(read("package-lock.json")).not.toContain('"resolved"');
});
