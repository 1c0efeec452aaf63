import { defineConfig } from "vitest/config";

// Each file starts servers of its own, so the files may run side by side.
export default defineConfig({ test: { include: ["test-server/**/*.test.ts"], testTimeout: 90_000, hookTimeout: 30_000 } });
