// Writes src/generated/openapi.ts from openapi/openapi.json. A test compares the file with what this makes.

import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const HEADER = "// Written by `npm run generate` from openapi/openapi.json. Do not edit.\n\n";
export const generatedFile = new URL("../src/generated/openapi.ts", import.meta.url);
const documentFile = new URL("../../../openapi/openapi.json", import.meta.url);

/** An object that only describes itself would become `Record<string, never>`, which no object with fields is. */
function isBare(schema) {
  return schema.type === "object" && !schema.properties && schema.additionalProperties === undefined;
}

/** The value of a JSON document without the parts of an `allOf` that say nothing. */
function withoutBareParts(key, value) {
  return key === "allOf" ? value.filter((part) => !isBare(part)) : value;
}

export async function generate() {
  const document = JSON.parse(await readFile(documentFile, "utf8"), withoutBareParts);
  return HEADER + astToString(await openapiTS(document, { alphabetize: true, defaultNonNullable: false }));
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await writeFile(generatedFile, await generate());
}
