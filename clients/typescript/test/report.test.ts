// Where the errors of an app's callbacks go.

import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { afterEach, expect, test, vi } from "vitest";
import { callSafely } from "../src/runner.js";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** Runs a module of this folder in another process, as Node would run it in production. */
async function runInNode(path: string): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const result = await build({
    configFile: false,
    logLevel: "silent",
    build: {
      write: false,
      minify: false,
      target: "node20",
      rollupOptions: { input: fileURLToPath(new URL(path, import.meta.url)) },
    },
  });
  const [bundled] = [result].flat().flatMap((part) => ("output" in part ? part.output : []));
  const child = spawn(process.execPath, ["--input-type=module", "-"]);
  child.stdin.end(bundled && "code" in bundled ? bundled.code : "");
  const ended = new Promise((resolve) => child.on("close", resolve));
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr };
}

test("in Node, a callback that fails ends no process, and the same items come again", async () => {
  const { code, stdout, stderr } = await runInNode("child/app.ts");
  expect(stderr).toContain("Error: a broken component");
  expect(stderr).toContain("Error: disk full");
  expect({ code, stdout }).toEqual({ code: 0, stdout: '{"calls":2,"stored":[1]}' });
});

const error = new Error("a broken component");
const fail = () => {
  throw error;
};

test("on a page, its error handler hears of it", () => {
  const reportError = vi.fn();
  vi.stubGlobal("document", {});
  vi.stubGlobal("reportError", reportError);
  callSafely(fail);
  expect(reportError.mock.calls).toEqual([[error]]);
});

test("elsewhere it is logged: `reportError` of Deno and Bun ends the process", () => {
  const reportError = vi.fn();
  vi.stubGlobal("reportError", reportError);
  const logged = vi.spyOn(console, "error").mockImplementation(() => {});
  callSafely(fail);
  expect([reportError.mock.calls, logged.mock.calls]).toEqual([[], [[error]]]);
});
