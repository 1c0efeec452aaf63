// Writes dist/: the three files that the server carries. A test compares them with what this makes.

import { mkdir, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
export const folder = at("dist");

/** The files by name. The same sources and lock file always make the same bytes. */
export async function bundle() {
  const { outputFiles } = await build({
    entryPoints: [
      { in: at("src/main.tsx"), out: "console" },
      { in: at("src/styles/console.css"), out: "console" },
      { in: at("src/index.html"), out: "index" },
    ],
    outdir: folder,
    absWorkingDir: at("."),
    bundle: true,
    write: false,
    minify: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    loader: { ".html": "copy" },
    tsconfig: at("tsconfig.json"),
    // The client's sources find the package here, whether or not the client's own packages are installed.
    alias: { "openapi-fetch": at("node_modules/openapi-fetch") },
  });
  return new Map(outputFiles.map(({ path, contents }) => [basename(path), Buffer.from(contents)]));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await mkdir(folder, { recursive: true });
  for (const [name, contents] of await bundle()) await writeFile(`${folder}/${name}`, contents);
}
