// Writes dist/: the three files that the server carries. A test compares them with what this makes.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
export const folder = at("dist");

/** The files by name. The same sources and lock file always make the same bytes. */
export async function bundle() {
  const { outputFiles, metafile } = await build({
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
    // Whole notices come at the end instead.
    legalComments: "none",
    metafile: true,
    loader: { ".html": "copy" },
    tsconfig: at("tsconfig.json"),
    // The client's sources find the package here, whether or not the client's own packages are installed.
    alias: { "openapi-fetch": at("node_modules/openapi-fetch") },
  });
  const files = new Map(outputFiles.map(({ path, contents }) => [basename(path), Buffer.from(contents)]));
  files.set("console.js", Buffer.concat([files.get("console.js"), Buffer.from(await noticesOf(metafile))]));
  return files;
}

/** The licences of the packages in the bundle ask that every copy has them. */
async function noticesOf({ inputs }) {
  const names = Object.keys(inputs).map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  const packages = [...new Set(names.filter(Boolean))].sort();
  const notices = packages.map(async (name) => `${name}\n\n${await readFile(at(`node_modules/${name}/LICENSE`), "utf8")}`);
  return `/*!\n${(await Promise.all(notices)).join("\n")}*/\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await mkdir(folder, { recursive: true });
  for (const [name, contents] of await bundle()) await writeFile(`${folder}/${name}`, contents);
}
