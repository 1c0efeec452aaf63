import { defineConfig } from "vitest/config";

// A busy machine is slow: the pauses between repeats are real in some tests, and others run the compiler.
export default defineConfig({ test: { include: ["test/**/*.test.{ts,tsx}"], testTimeout: 300_000, hookTimeout: 300_000 } });
