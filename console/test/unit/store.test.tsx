// @vitest-environment happy-dom
import { render } from "preact";
import { expect, it } from "vitest";
import { Store, useStore } from "../../src/store.js";

it("a change between a render and its effects is shown", async () => {
  const store = new Store("before");
  const shown: string[] = [];
  const Shows = () => {
    shown.push(useStore(store));
    return null;
  };
  render(<Shows />, document.createElement("div"));
  // The effects have not run: nobody listens yet.
  store.set("after");
  await expect.poll(() => shown.at(-1)).toBe("after");
  store.set("later");
  await expect.poll(() => shown.at(-1)).toBe("later");
});
