// The guide: what is clicked while a step runs.
// @vitest-environment happy-dom

import { render } from "preact";
import { afterEach, beforeEach, expect, it } from "vitest";
import { STEPS } from "../../src/try/guide.js";
import { Guide } from "../../src/try/guide-view.js";
import type { World } from "../../src/try/world.js";

let body: HTMLElement;
/** Ends the step that runs. */
let end: (isDone: boolean) => void;

beforeEach(() => {
  body = document.createElement("div");
  const run = () =>
    new Promise<boolean>((resolve) => {
      end = resolve;
    });
  render(<Guide world={{} as World} said={null} run={run} />, body);
});

afterEach(() => render(null, body));

const heading = () => body.querySelector("h2")?.textContent;
const button = (name: string) => [...body.querySelectorAll("button")].find(({ textContent }) => textContent === name);
const isBusy = () => body.querySelector(".primary")?.getAttribute("aria-disabled") === "true";

async function press(name: string): Promise<void> {
  await expect.poll(() => button(name)).toBeTruthy();
  button(name)?.click();
}

async function begin(): Promise<void> {
  await press("Do it");
  await expect.poll(isBusy).toBe(true);
}

async function finish(isDone = true): Promise<void> {
  end(isDone);
  await expect.poll(isBusy).toBe(false);
}

it("a step that is done leads to the next one, and one that fails does not", async () => {
  await begin();
  await finish(false);
  expect(heading()).toBe(STEPS[0]?.title);
  await begin();
  await finish();
  expect(heading()).toBe(STEPS[1]?.title);
});

it("a step that ends after the rest was skipped does not undo that", async () => {
  await begin();
  await finish();
  await begin();
  await press("Skip the rest");
  await expect.poll(heading).toBe("Now try it yourself");
  await finish();
  expect(heading()).toBe("Now try it yourself");
});

it("a step that ends after the guide began again does not lead past its beginning", async () => {
  await begin();
  await finish();
  await begin();
  await press("Skip the rest");
  await press("Start again");
  await expect.poll(heading).toBe(STEPS[0]?.title);
  await finish();
  expect(heading()).toBe(STEPS[0]?.title);
});
