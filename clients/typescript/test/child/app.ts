// An app whose callbacks fail once, as a process of its own. It prints what it got in the end.

import { createHeadmark } from "../../src/client.js";
import { InboxReader } from "../../src/inbox/reader.js";
import { UnreadPoller } from "../../src/poller/poller.js";
import { systemClock } from "../../src/surroundings.js";

const ANSWERS: Record<string, object> = {
  badges: { user_id: "42", epoch: "e1", revision: 1, degraded: false, total: 3 },
  inbox: { items: [{ seq: 1, sender_id: "7", content: "Hi" }], epoch: "i1", head: 1, next_after: 1, has_more: false },
};

const headmark = createHeadmark({
  baseUrl: "http://headmark.test",
  fetch: ({ url }) => Promise.resolve(Response.json(ANSWERS[new URL(url).pathname.split("/").at(-1) ?? ""])),
});
const clock = { ...systemClock, sleep: (ms: number, wake: () => void) => systemClock.sleep(ms / 10, wake) };

const poller = new UnreadPoller({ headmark, clock });
poller.subscribe(() => {
  throw new Error("a broken component");
})();

let calls = 0;
const stored = await new Promise<number[]>((resolve) => {
  const reader = new InboxReader({
    headmark,
    clock,
    position: null,
    onItems: (items) => {
      calls += 1;
      if (calls === 1) throw new Error("disk full");
      void reader.stop();
      resolve(items.map((item) => item.seq));
    },
    onReset: () => {},
  });
  reader.start();
});
process.stdout.write(JSON.stringify({ calls, stored }));
