import { readdir, readFile } from "node:fs/promises";
import { expect, it } from "vitest";
// @ts-expect-error: a script without types.
import { bundle, folder } from "../../scripts/build.mjs";

it("dist/ is what `npm run build` writes", async () => {
  const files: Map<string, Buffer> = await bundle();
  expect([...files.keys()].sort()).toEqual((await readdir(folder)).sort());
  for (const [name, contents] of files) {
    expect(contents.equals(await readFile(`${folder}/${name}`)), `${name}: run npm run build`).toBe(true);
  }
});

it("the bundle names no other host and makes no HTML out of texts", async () => {
  const files: Map<string, Buffer> = await bundle();
  for (const [name, contents] of files) {
    const text = contents.toString();
    const hosts = [...text.matchAll(/https?:\/\/([a-z0-9.-]+)/g)].map(([, host]) => host);
    // Names of markup languages, which nobody requests.
    expect(
      hosts.filter((host) => host !== "www.w3.org"),
      name,
    ).toEqual([]);
    expect(text).not.toMatch(/\beval\(|new Function|insertAdjacentHTML|document\.write/);
  }
});

it("the bundle carries the notices of the packages in it", async () => {
  const files: Map<string, Buffer> = await bundle();
  const notices = files.get("console.js")?.toString().split("/*!").at(-1);
  for (const text of ["preact", "Copyright (c) 2015-present Jason Miller", "openapi-fetch", "Copyright (c) 2023 Drew Powers"]) {
    expect(notices).toContain(text);
  }
  expect(notices?.match(/this permission notice shall be included in all/g)).toHaveLength(2);
});

it("no source sets HTML", async () => {
  const sources = (await readdir(new URL("../../src", import.meta.url), { recursive: true })).filter((path) =>
    /\.tsx?$/.test(path),
  );
  expect(sources.length).toBeGreaterThan(30);
  for (const path of sources) {
    const text = await readFile(new URL(`../../src/${path}`, import.meta.url), "utf8");
    expect(text, path).not.toMatch(/innerHTML|outerHTML|dangerously|insertAdjacentHTML/);
  }
});
