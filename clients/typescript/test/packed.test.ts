// The package as an app installs it: its files, and its types under the settings of apps.

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = fileURLToPath(new URL("../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "headmark-packed-"));
const installed = join(folder, "node_modules/@headmark/client");

beforeAll(() => {
  execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: root });
  mkdirSync(installed, { recursive: true });
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  execFileSync("tar", ["xzf", join(folder, `headmark-client-${version}.tgz`), "-C", installed, "--strip-components=1"]);
  for (const name of ["openapi-fetch", "react", "@types"]) {
    symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  }
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
});

afterAll(() => rmSync(folder, { recursive: true }));

test("it carries both licences", () => {
  for (const name of ["LICENSE-MIT", "LICENSE-APACHE"]) {
    expect(existsSync(join(installed, name)), name).toBe(true);
    expect(readFileSync(join(installed, name), "utf8")).toBe(readFileSync(join(root, "../..", name), "utf8"));
  }
});

/** What the compiler says of an app that holds the examples of the README. */
function compile(name: string, config: object): string {
  const app = join(folder, name);
  cpSync(join(root, "examples"), app, { recursive: true });
  writeFileSync(join(app, "tsconfig.json"), JSON.stringify(config));
  try {
    return execFileSync(join(root, "node_modules/.bin/tsc"), ["--project", app], { encoding: "utf8" });
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

test("the examples compile with `strict` and nothing else", () => {
  const lib = ["ES2022", "DOM", "DOM.Iterable"];
  const bundled = { module: "ESNext", moduleResolution: "Bundler", jsx: "react-jsx", target: "ES2022", lib, types: [] };
  expect(compile("strict", { compilerOptions: { ...bundled, strict: true, noEmit: true } })).toBe("");
});

test("the examples compile with the flags of this package", () => {
  const config = { extends: join(root, "tsconfig.json"), compilerOptions: { paths: {} }, include: ["."] };
  expect(compile("flags", config)).toBe("");
});
