import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// One file after the other: each has a browser and servers of its own, and a small machine has to keep up.
export default defineConfig({
  resolve: {
    alias: { "@headmark/client": at("../clients/typescript/src/index.ts"), "openapi-fetch": at("node_modules/openapi-fetch") },
  },
  test: {
    include: ["test/**/*.test.{ts,tsx}"],
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 10_000 } },
  },
});
