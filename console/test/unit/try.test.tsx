// Try it: what the page offers for a terminal.
// @vitest-environment happy-dom

import { render } from "preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Session } from "../../src/session.js";
import { TryPage } from "../../src/try/page.js";

let body: HTMLElement;

beforeEach(() => {
  // The server may be silent: the page is there all the same.
  vi.stubGlobal("fetch", () => new Promise(() => {}));
  body = document.createElement("div");
});

afterEach(() => {
  render(null, body);
  vi.unstubAllGlobals();
});

it.each([
  [true, "curl -X POST ", false],
  [false, 'curl -H "authorization: Bearer $KEY" -X POST ', true],
])("the command for a terminal has a key where the server wants one (open: %s)", (isOpen, start, saysWhich) => {
  const session = new Session();
  // Somebody has agreed to start them.
  session.startedUsers = "7,8,9";
  render(<TryPage session={session} isOpen={isOpen} users="7,8,9" />, body);
  const command = body.querySelector("details pre")?.textContent;
  expect(command).toBe(`${start}${location.origin}/v1/users/7/badges/like/increment`);
  expect(body.querySelector("details")?.textContent?.includes("$KEY is the secret of a service key")).toBe(saysWhich);
});
