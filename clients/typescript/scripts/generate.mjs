// Writes src/generated/openapi.ts from openapi/openapi.json. A test compares the file with what this makes.

import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const HEADER = "// Written by `npm run generate` from openapi/openapi.json. Do not edit.\n\n";
export const generatedFile = new URL("../src/generated/openapi.ts", import.meta.url);
const documentFile = new URL("../../../openapi/openapi.json", import.meta.url);

export async function generate() {
  const document = JSON.parse(await readFile(documentFile, "utf8"));
  return HEADER + astToString(await openapiTS(document, { alphabetize: true, defaultNonNullable: false }));
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await writeFile(generatedFile, await generate());
}
