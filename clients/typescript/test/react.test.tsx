// The hook in React's own renderer.
// @vitest-environment happy-dom

import { act, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { renderToString } from "react-dom/server";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { UnreadPoller } from "../src/poller/poller.js";
import { useUnread } from "../src/react.js";
import { Stub, settle, summary } from "./stub.js";

let stub: Stub;
let poller: UnreadPoller;
let root: Root;
let container: HTMLElement;
let renders = 0;

beforeEach(() => {
  vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);
  stub = new Stub();
  poller = new UnreadPoller({ headmark: stub.headmark, clock: stub.clock, signals: stub.signals });
  container = document.createElement("div");
  root = createRoot(container);
  renders = 0;
});

afterEach(async () => {
  await act(() => root.unmount());
  vi.unstubAllGlobals();
});

function Badge() {
  const { summary: shown, status, reset } = useUnread(poller);
  renders += 1;
  return (
    <button type="button" onClick={() => reset("counters", "mention")}>
      {status} {shown?.total ?? "-"}
    </button>
  );
}

async function answer(body: object): Promise<void> {
  const request = await stub.last();
  await act(() => request.answer(200, body, { etag: '"a"' }));
}

test("two components share one loop, and a click resets at once", async () => {
  await act(() =>
    root.render(
      <StrictMode>
        <Badge />
        <Badge />
      </StrictMode>,
    ),
  );
  expect(container.textContent).toBe("loading -loading -");
  await answer(summary(1, 3));
  expect(stub.requests.length).toBe(1);
  expect(container.textContent).toBe("live 3live 3");

  await act(() => container.querySelector("button")?.click());
  expect(container.textContent).toBe("live 0live 0");
  const reset = await stub.last();
  expect(reset.body).toBe('{"up_to":3}');
  await act(() => reset.answer(200, { badge: "mention", unread: 0, head: 3, revision: 2 }));
  expect(container.textContent).toBe("live 0live 0");
});

test("nothing is rendered again when nothing changed", async () => {
  await act(() => root.render(<Badge />));
  await answer(summary(1, 3));
  const before = renders;
  await act(() => stub.pass(1_000));
  await answer(summary(1, 3));
  expect(renders).toBe(before);
});

test("unmounting ends the loop", async () => {
  await act(() => root.render(<Badge />));
  const request = await stub.last();
  await act(() => root.render(<p>gone</p>));
  await settle();
  expect(request.isAborted).toBe(true);
  expect(poller.view.status).toBe("idle");
});

test("a component that takes over keeps the request", async () => {
  await act(() => root.render(<Badge key="first" />));
  const request = await stub.last();
  await act(() => root.render(<Badge key="second" />));
  await settle();
  expect(request.isAborted).toBe(false);
  expect(stub.requests.length).toBe(1);
});

test("on a server it renders without polling", () => {
  expect(renderToString(<Badge />)).toContain("idle");
  expect(stub.requests.length).toBe(0);
});
