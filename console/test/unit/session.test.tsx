// The key: where it is kept, and how it is forgotten.
// @vitest-environment happy-dom

import { render } from "preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { parseRoute } from "../../src/route.js";
import { Session } from "../../src/session.js";
import { Shell } from "../../src/shell.js";
import { Store } from "../../src/store.js";

const GOOD = "a-key-of-16-and-more";
/** The server takes it, too. */
const NEXT = "another-key-of-16-and-more";
const BAD = "a-wrong-key-of-16-and-more";

/** What was sent, as the `Authorization` of each request. */
let sent: (string | null)[];
/** The status of answers to a right key, and the code of those that refuse. */
let status: number;
let problem: string;
/** Whether requests without a key get no answer. */
let isSilent: boolean;
let body: HTMLElement;

beforeEach(() => {
  sent = [];
  status = 200;
  problem = "refused";
  isSilent = false;
  sessionStorage.clear();
  vi.stubGlobal("fetch", (input: Request | string, init?: RequestInit) => {
    const key = new Headers(input instanceof Request ? input.headers : init?.headers).get("authorization");
    sent.push(key);
    if (isSilent && key === null) return new Promise(() => {});
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
  const code = key === `Bearer ${GOOD}` || key === `Bearer ${NEXT}` ? status : 401;
  return Response.json(code < 400 ? { items: [] } : { code: problem, title: "T", detail: "D", status: code }, { status: code });
}

function open(route = new Store(parseRoute("#/lookup"))): Session {
  const session = new Session();
  session.start();
  render(<Shell session={session} route={route} />, body);
  return session;
}

const keyInput = () => body.querySelector<HTMLInputElement>("#key");
const button = (name: string) => [...body.querySelectorAll("button")].find(({ textContent }) => textContent === name);

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

it("a key is taken although the user that it is tried with was erased", async () => {
  status = 410;
  problem = "erased";
  open();
  await enter(GOOD);
  await expect.poll(() => body.textContent).toContain("Service key Forget it");
});

it("a key stays in the page, which asks again when it is loaded again", async () => {
  open();
  await enter(BAD);
  await expect.poll(() => body.textContent).toContain("The server refused this key.");
  await enter(GOOD);
  await expect.poll(() => body.textContent).toContain("Service key Forget it");
  expect(sent.at(-1)).toBe(`Bearer ${GOOD}`);
  expect([sessionStorage.length, localStorage.length]).toEqual([0, 0]);
  render(null, body);
  open();
  await expect.poll(keyInput).toBeTruthy();
  expect(sent.at(-1)).toBeNull();
});

it("a key is tried again while the server is away", async () => {
  status = 503;
  open();
  await enter(GOOD);
  await expect.poll(() => body.textContent).toContain("The server is away");
  status = 200;
  await expect.poll(() => button("Forget it"), { timeout: 5_000 }).toBeTruthy();
});

it.each([401, 403])("a key that is refused with %i can be forgotten", async (refusal) => {
  status = refusal;
  const session = open();
  await enter(GOOD);
  await expect.poll(() => body.querySelector("[role=alert]")).toBeTruthy();
  const input = keyInput();
  if (input) input.value = "half a k";
  button("Forget it")?.click();
  await expect.poll(() => body.querySelector("[role=alert]")).toBeNull();
  await expect.poll(keyInput).toBeTruthy();
  expect(button("Forget it")).toBeUndefined();
  expect([keyInput()?.value, document.activeElement === keyInput()]).toEqual(["", true]);
  await session.probe("/metrics", new AbortController().signal);
  expect(sent.at(-1)).toBeNull();
});

it("a late refusal of the key before says nothing of the new one", async () => {
  const session = open();
  await enter(GOOD);
  await expect.poll(() => session.access.value).toEqual({ state: "ready", key: GOOD });
  let answer: (response: Response) => void = () => {};
  const late = new Promise<Response>((resolve) => {
    answer = resolve;
  });
  const read = session.headmark(() => late).GET("/v1/events");
  session.forget();
  await enter(NEXT);
  await expect.poll(() => session.access.value).toEqual({ state: "ready", key: NEXT });
  answer(Response.json({ code: "unauthorized", title: "T", detail: "D", status: 401 }, { status: 401 }));
  await expect(read).rejects.toThrow();
  expect(session.access.value).toEqual({ state: "ready", key: NEXT });
});

it("who agreed to start the phones is not asked again, until the key is forgotten", async () => {
  // Nor is anything stored for it.
  blockStorage();
  const route = new Store(parseRoute("#/try"));
  open(route);
  await enter(GOOD);
  await expect.poll(() => button("Start the phones")).toBeTruthy();
  button("Start the phones")?.click();
  await expect.poll(() => body.textContent).toContain("Step 1 of");
  route.set(parseRoute("#/lookup"));
  await expect.poll(() => body.textContent).toContain("Look up a user");
  route.set(parseRoute("#/try"));
  await expect.poll(() => body.textContent).toContain("Step 1 of");
  route.set(parseRoute("#/try/7,8,9"));
  await expect.poll(() => button("Start the phones"), { message: "these are others" }).toBeTruthy();
  button("Start the phones")?.click();
  await expect.poll(() => body.textContent).toContain("Step 1 of");
  button("Forget it")?.click();
  await enter(GOOD);
  await expect.poll(() => button("Start the phones")).toBeTruthy();
});

it("a forgotten key is out of use at once, and what it showed is gone, before the server answers", async () => {
  open(new Store(parseRoute("#/try")));
  await enter(GOOD);
  await expect.poll(() => button("Start the phones")).toBeTruthy();
  button("Start the phones")?.click();
  await expect.poll(() => body.querySelectorAll(".phone").length).toBe(3);
  const uses = () => sent.filter((key) => key === `Bearer ${GOOD}`).length;
  await expect.poll(() => uses()).toBeGreaterThan(3);
  isSilent = true;
  button("Forget it")?.click();
  await expect.poll(() => body.textContent).toContain("Asking the server…");
  expect(body.querySelectorAll(".phone").length).toBe(0);
  const before = uses();
  // More than the second that lies between two polls.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(uses()).toBe(before);
});
