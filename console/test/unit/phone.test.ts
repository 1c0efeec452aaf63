// A phone's poller: when it polls.
// @vitest-environment happy-dom

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Session } from "../../src/session.js";
import { type Person, peopleOf } from "../../src/try/people.js";
import { Phone } from "../../src/try/phone.js";

let phone: Phone;

beforeEach(() => {
  // The server is silent.
  vi.stubGlobal("fetch", () => new Promise(() => {}));
  vi.spyOn(location, "origin", "get").mockReturnValue("http://headmark.internal:8080");
  const [ann] = peopleOf("7,8,9");
  phone = new Phone(ann as Person, new Session());
});

afterEach(() => {
  phone.stop();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it("the server of the page is polled, whatever the browser knows of the network", () => {
  vi.spyOn(navigator, "onLine", "get").mockReturnValue(false);
  phone.start(30);
  window.dispatchEvent(new Event("offline"));
  expect(phone.view.value.status).toBe("loading");
});

it("a hidden page does not poll", () => {
  vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
  phone.start(30);
  expect(phone.view.value.status).toBe("paused");
});
