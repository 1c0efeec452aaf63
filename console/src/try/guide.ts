// Eight steps in which a newcomer sees what heads and marks are for.

import type { Phone } from "./phone.js";
import { LIKES, NEWS, type World } from "./world.js";

export interface Step {
  title: string;
  /** What to look at. */
  watch: string;
  /** Does it, and says what happened. */
  run(world: World): Promise<string>;
}

export const STEPS: Step[] = [
  {
    title: "Bob likes Ann’s picture",
    watch: "Watch the likes on Ann’s phone. Her poll is held by the server and answers at once.",
    run: async (world) => {
      const ann = world.phone("Ann");
      const before = headOfLikes(ann);
      const said = await world.like(world.phone("Bob"), ann);
      await shows(ann, () => headOfLikes(ann) > before);
      return `${said} Her mark did not move. Unread is head minus mark.`;
    },
  },
  {
    title: "Ann opens her likes",
    watch: "The number falls to 0 before the server answers. Then the mark is at the head.",
    run: async (world) => {
      const ann = world.phone("Ann");
      const head = headOfLikes(ann);
      ann.reset("counters", LIKES);
      await shows(ann, () => unreadLikes(ann) === 0);
      return `Ann’s phone sent “read up to ${head}”, the head that it had shown.`;
    },
  },
  {
    title: "A like arrives while Ann opens her likes",
    watch: "Cleo’s like is on Ann’s screen. Bob’s arrives just before the reset does.",
    run: async (world) => {
      const ann = world.phone("Ann");
      const before = headOfLikes(ann);
      await world.like(world.phone("Cleo"), ann);
      await shows(ann, () => headOfLikes(ann) > before);
      const shown = headOfLikes(ann);
      await world.like(world.phone("Bob"), ann);
      ann.reset("counters", LIKES, shown);
      await shows(ann, () => headOfLikes(ann) > shown && unreadLikes(ann) === headOfLikes(ann) - shown);
      return `Ann read up to ${shown}. Bob’s like is at ${headOfLikes(ann)} and stays unread. A counter set to 0 would have lost it.`;
    },
  },
  {
    title: "Cleo likes Ann’s picture, and takes it back",
    watch: "Her position gets a dashed cell, and the head stays. Bob’s like before it is still unread.",
    run: async (world) => {
      const [ann, cleo] = [world.phone("Ann"), world.phone("Cleo")];
      const before = unreadLikes(ann);
      await world.like(cleo, ann);
      await shows(ann, () => unreadLikes(ann) > before);
      const said = await world.takeLikeBack(cleo, ann);
      await shows(ann, () => unreadLikes(ann) <= before);
      return said;
    },
  },
  {
    title: "News for everybody",
    watch: "All three phones show one more. Each of their held polls answers.",
    run: async (world) => {
      const before = world.phones.map(headOfNews);
      const said = await world.broadcast(world.phone("Ann"));
      // A phone shows only what it was told of, and Bob is about to read it.
      await Promise.all(world.phones.map((phone, at) => shows(phone, () => headOfNews(phone) > (before[at] ?? 0))));
      return said;
    },
  },
  {
    title: "Bob reads the news",
    watch: "One mark moves. The head is shared, so it is the same on all phones.",
    run: async (world) => {
      const bob = world.phone("Bob");
      bob.reset("broadcasts", NEWS);
      await shows(bob, () => bob.view.value.summary?.broadcasts?.[NEWS]?.unread === 0);
      return "Bob’s mark is at the head. The marks of Ann and Cleo did not move.";
    },
  },
  {
    title: "Cleo follows Ann, and Ann posts",
    watch: "Cleo’s feed counts Ann’s posts from the moment of the follow.",
    run: async (world) => {
      const [ann, cleo] = [world.phone("Ann"), world.phone("Cleo")];
      await world.follow(cleo, ann);
      return await world.post(ann);
    },
  },
  {
    title: "Bob writes to Cleo",
    watch: "A direct message is a row in both inboxes. It is unread for the receiver alone.",
    run: (world) => world.message(world.phone("Bob"), world.phone("Cleo")),
  },
];

function headOfLikes(phone: Phone): number {
  return phone.view.value.summary?.counters?.[LIKES]?.head ?? 0;
}

function headOfNews(phone: Phone): number {
  return phone.view.value.summary?.broadcasts?.[NEWS]?.head ?? 0;
}

function unreadLikes(phone: Phone): number {
  return phone.view.value.summary?.counters?.[LIKES]?.unread ?? 0;
}

/** Until the phone shows it, but not for ever: the server may be away. */
function shows(phone: Phone, isShown: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      clearTimeout(timer);
      stop();
      settle();
    };
    const timer = setTimeout(() => end(() => reject(new Error("The phone has not heard of it yet."))), 10_000);
    const stop = phone.view.subscribe(() => isShown() && end(resolve));
    if (isShown()) end(resolve);
  });
}
