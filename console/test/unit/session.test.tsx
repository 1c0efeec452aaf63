// The key of this tab: when it is kept, and how it is forgotten.
// @vitest-environment happy-dom

import { render } from "preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { parseRoute } from "../../src/route.js";
import { Session } from "../../src/session.js";
import { Shell } from "../../src/shell.js";
import { Store } from "../../src/store.js";

const GOOD = "a-key-of-16-and-more";
const BAD = "a-wrong-key-of-16-and-more";

/** What was sent, as the `Authorization` of each request. */
let sent: (string | null)[];
/** The status of answers to the right key. */
let status: number;
let body: HTMLElement;

beforeEach(() => {
  sent = [];
  status = 200;
  sessionStorage.clear();
  vi.stubGlobal("fetch", (input: Request | string, init?: RequestInit) => {
    const key = new Headers(input instanceof Request ? input.headers : init?.headers).get("authorization");
    sent.push(key);
    return Promise.resolve(answerTo(key));
  });
  body = document.createElement("div");
  document.body.append(body);
});

afterEach(() => {
  render(null, body);
  body.remove();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function answerTo(key: string | null): Response {
  const code = key === `Bearer ${GOOD}` ? status : 401;
  return Response.json(code < 400 ? { items: [] } : { code: "refused", title: "T", detail: "D", status: code }, { status: code });
}

function open(part = "#/lookup"): Session {
  const session = new Session();
  session.start();
  render(<Shell session={session} route={new Store(parseRoute(part))} />, body);
  return session;
}

const keyInput = () => body.querySelector<HTMLInputElement>("#key");
const button = (name: string) => [...body.querySelectorAll("button")].find(({ textContent }) => textContent === name);
const stored = () => JSON.stringify({ ...sessionStorage });

async function enter(key: string): Promise<void> {
  await expect.poll(keyInput).toBeTruthy();
  const input = keyInput();
  if (input) input.value = key;
  input?.form?.dispatchEvent(new Event("submit", { cancelable: true }));
}

/** As where a browser blocks the data of sites: the getter itself throws. */
function blockStorage(): void {
  vi.spyOn(window, "sessionStorage", "get").mockImplementation(() => {
    throw new DOMException("The operation is insecure.", "SecurityError");
  });
}

it("a key is kept once it worked, not before", async () => {
  open();
  await enter(BAD);
  await expect.poll(() => body.textContent).toContain("The server refused this key.");
  expect(stored()).not.toContain(BAD);
  await enter(GOOD);
  await expect.poll(() => body.textContent).toContain("Service key Forget it");
  expect(stored()).toContain(GOOD);
  render(null, body);
  expect(open().access.value.state).toBe("asking");
  await expect.poll(() => button("Forget it")).toBeTruthy();
  expect(sent.at(-1)).toBe(`Bearer ${GOOD}`);
});

it("a key is not kept while the server is away", async () => {
  status = 503;
  open();
  await enter(GOOD);
  await expect.poll(() => body.textContent).toContain("The server is away");
  expect(stored()).not.toContain(GOOD);
  status = 200;
  await expect.poll(() => button("Forget it"), { timeout: 5_000 }).toBeTruthy();
  expect(stored()).toContain(GOOD);
});

it.each([401, 403])("a key that is refused with %i can be forgotten", async (refusal) => {
  open();
  await enter(GOOD);
  await expect.poll(() => button("Forget it")).toBeTruthy();
  render(null, body);
  status = refusal;
  const session = open();
  await expect.poll(() => body.querySelector("[role=alert]")).toBeTruthy();
  const input = keyInput();
  if (input) input.value = "half a k";
  button("Forget it")?.click();
  await expect.poll(() => body.querySelector("[role=alert]")).toBeNull();
  expect(button("Forget it")).toBeUndefined();
  expect(stored()).not.toContain(GOOD);
  expect([keyInput()?.value, document.activeElement === keyInput()]).toEqual(["", true]);
  await session.probe("/metrics", new AbortController().signal);
  expect(sent.at(-1)).toBeNull();
});

it("where nothing can be stored, the page works until it is left", async () => {
  blockStorage();
  open("#/try");
  await enter(GOOD);
  await expect.poll(() => button("Forget it")).toBeTruthy();
  button("Start the phones")?.click();
  await expect.poll(() => body.textContent).toContain("Step 1 of");
  button("Forget it")?.click();
  await expect.poll(keyInput).toBeTruthy();
});
