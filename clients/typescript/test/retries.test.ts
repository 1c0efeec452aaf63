// Every case of clients/vectors/retries.json: what the client sends again, and what it does not.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { takesKey } from "../src/repeat.js";
import { createTransport } from "../src/transport.js";

interface Case {
  why: string;
  method: string;
  path: string;
  body: object | null;
  has_key: boolean;
  outcome: { type: "no_answer"; status?: number; body?: string } | { type: "problem"; status: number; code?: string };
  again: boolean;
}

interface Operation {
  parameters?: { name: string }[];
}

const cases = JSON.parse(readFileSync(new URL("../../vectors/retries.json", import.meta.url), "utf8")) as Case[];

function bodyOf(outcome: Case["outcome"]): string | null {
  if (outcome.type === "no_answer") return outcome.body || null;
  return outcome.code ? JSON.stringify({ code: outcome.code, title: "T", detail: "D" }) : "<h1>Bad Gateway</h1>";
}

/** How often a server that always fails in this way is asked, with one retry. */
async function attempts({ method, path, body, has_key, outcome }: Case): Promise<number> {
  let count = 0;
  const send = () => {
    count += 1;
    const { status } = outcome;
    if (status === undefined) return Promise.reject(new TypeError("cut"));
    return Promise.resolve(new Response(bodyOf(outcome), { status, headers: { "retry-after": "0" } }));
  };
  const headers = { "content-type": "application/json", ...(has_key && { "idempotency-key": "k1" }) };
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
  await expect(createTransport({ retries: 1, fetch: send })(new Request(`http://h.test/base${path}`, init))).rejects.toThrow();
  return count;
}

test.concurrent.each(cases)("$why ($method $path after $outcome)", async (one) => {
  expect(await attempts(one)).toBe(one.again ? 2 : 1);
});

test("the routes that take a key are those of the document", () => {
  const document = new URL("../../../openapi/openapi.json", import.meta.url);
  const { paths } = JSON.parse(readFileSync(document, "utf8")) as { paths: Record<string, { post?: Operation }> };
  const posts = Object.entries(paths).flatMap(([path, { post }]) => (post ? [{ path, post }] : []));
  const hasKey = ({ post }: { post: Operation }) => post.parameters?.some(({ name }) => name === "Idempotency-Key");
  const found = posts.filter(({ path }) => takesKey(`http://h.test/base${path.replace(/{\w+}/g, "v1")}`));
  expect(found.map(({ path }) => path)).toEqual(posts.filter(hasKey).map(({ path }) => path));
  expect(found.length).toBeGreaterThan(0);
});
