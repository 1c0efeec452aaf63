// With CONSOLE=sources the pages under test are those of the sources, not those in the binary. Everything else, the
// headers of the files included, comes from the server.

import type { BrowserContext } from "playwright-core";
// @ts-expect-error: a script without types.
import { bundle } from "../../scripts/build.mjs";

let files: Promise<Map<string, Buffer>> | undefined;

export async function serveSources(context: BrowserContext): Promise<void> {
  if (process.env.CONSOLE !== "sources") return;
  files ??= bundle() as Promise<Map<string, Buffer>>;
  const built = await files;
  await context.route(/\/console\/(console\.js|console\.css)?(\?|$)/, async (route) => {
    const name = new URL(route.request().url()).pathname.split("/").at(-1) || "index.html";
    const body = built.get(name);
    if (!body) return await route.fallback();
    const response = await route.fetch();
    const { "content-encoding": _, "content-length": __, ...headers } = response.headers();
    await route.fulfill({ status: response.status(), headers, body });
  });
}
