// What the page says about itself.
// @vitest-environment happy-dom

import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { createHeadmark } from "../src/client.js";
import { InboxReader } from "../src/inbox/reader.js";
import { UnreadPoller } from "../src/poller/poller.js";
import { onlineSignals, pageSignals, type Signals } from "../src/surroundings.js";

afterEach(() => vi.restoreAllMocks());

test("the present state comes at once, then the changes, until the end", () => {
  const signals: string[] = [];
  const visibility = vi.spyOn(document, "visibilityState", "get").mockReturnValue("visible");
  const end = pageSignals((signal) => signals.push(signal));
  visibility.mockReturnValue("hidden");
  document.dispatchEvent(new Event("visibilitychange"));
  vi.spyOn(navigator, "onLine", "get").mockReturnValue(false);
  window.dispatchEvent(new Event("offline"));
  end();
  document.dispatchEvent(new Event("visibilitychange"));
  window.dispatchEvent(new Event("offline"));
  expect(signals).toEqual(["visible", "online", "hidden", "offline"]);
});

test("the inbox reader hears of the network only", () => {
  const signals: string[] = [];
  vi.spyOn(navigator, "onLine", "get").mockReturnValue(true);
  onlineSignals((signal) => signals.push(signal))();
  expect(signals).toEqual(["online"]);
});

/** A server that does not answer. */
function serverAt(baseUrl: string) {
  return createHeadmark({ baseUrl, fetch: () => new Promise(() => {}) });
}

function pollerOf(baseUrl: string, signals?: Signals): UnreadPoller {
  const poller = new UnreadPoller({ headmark: serverAt(baseUrl), ...(signals && { signals }) });
  onTestFinished(poller.subscribe(() => {}));
  return poller;
}

test.each([
  "http://localhost:8080",
  "http://LOCALHOST",
  "https://badges.localhost/base",
  "http://127.0.0.1:8080/base",
  "//127.1.2.3?x",
  "http://[::1]:8080",
])("a server at %s is polled without a network", (baseUrl) => {
  vi.spyOn(navigator, "onLine", "get").mockReturnValue(false);
  const poller = pollerOf(baseUrl);
  window.dispatchEvent(new Event("offline"));
  expect(poller.view.status).toBe("loading");
  expect(pollerOf(baseUrl, onlineSignals).view.status).toBe("loading");
  const options = { position: null, onItems: () => {}, onReset: () => {} };
  const reader = new InboxReader({ headmark: serverAt(baseUrl), ...options });
  reader.start();
  expect(reader.status).toBe("reading");
  void reader.stop();
});

test.each([
  "https://badges.example",
  "http://localhost.example:8080",
  "http://mylocalhost",
  "http://127.0.0.1.example",
  "http://127.example",
  "http://127.0.0.1@badges.example",
  "http://badges.example/localhost",
  "http://[fe80::1]:8080",
  "http://192.168.0.1:8080",
])("a server at %s is not", (baseUrl) => {
  vi.spyOn(navigator, "onLine", "get").mockReturnValue(false);
  expect(pollerOf(baseUrl).view.status).toBe("paused");
});

test.each([
  ["localhost", "loading"],
  ["badges.example", "paused"],
])("a server without a host is that of the page, here at %s", (hostname, status) => {
  vi.spyOn(navigator, "onLine", "get").mockReturnValue(false);
  vi.spyOn(location, "hostname", "get").mockReturnValue(hostname);
  expect(pollerOf("/base").view.status).toBe(status);
});

test("a hidden page polls no server on this machine either", () => {
  vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
  expect(pollerOf("http://localhost:8080").view.status).toBe("paused");
});
