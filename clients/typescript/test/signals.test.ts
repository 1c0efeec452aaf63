// What the page says about itself.
// @vitest-environment happy-dom

import { expect, test, vi } from "vitest";
import { onlineSignals, pageSignals } from "../src/surroundings.js";

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
