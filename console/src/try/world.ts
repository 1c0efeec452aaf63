// The three phones, and everything that their users can do. Each action says in a sentence what it did.

import type { Headmark } from "@headmark/client";
import type { Session } from "../session.js";
import { type Person, peopleOf } from "./people.js";
import { Phone } from "./phone.js";
import { watchWindows } from "./windows.js";

export const LIKES = "like";
export const NEWS = "news";

export class World {
  readonly phones: Phone[];
  readonly people: Person[];
  /** Positions of likes that can be taken back, by "who whom". */
  readonly #likes = new Map<string, number[]>();
  /** What is known of the group with the id of the first one. */
  #group: "nothing" | "made" | "complete" = "nothing";
  #unwatch: (() => void) | null = null;

  constructor(session: Session, users: string | null) {
    this.people = peopleOf(users);
    this.phones = this.people.map((person) => new Phone(person, session));
  }

  start(): void {
    this.#unwatch = watchWindows((waitS) => {
      for (const phone of this.phones) phone.start(waitS);
    });
  }

  stop(): void {
    this.#unwatch?.();
    for (const phone of this.phones) phone.stop();
  }

  phone(name: string): Phone {
    const phone = this.phones.find(({ person }) => person.name === name);
    if (!phone) throw new Error(`nobody is called ${name}`);
    return phone;
  }

  nameOf(user: string): string {
    return this.people.find(({ id }) => id === user)?.name ?? user;
  }

  others(phone: Phone): Phone[] {
    return this.phones.filter((other) => other !== phone);
  }

  async like(from: Phone, to: Phone): Promise<string> {
    const { data } = await from.backend.POST("/v1/users/{user}/badges/{badge}/increment", {
      params: { path: { user: to.user, badge: LIKES }, header: { "Idempotency-Key": freshId() } },
      body: { by: 1 },
    });
    const key = `${from.user} ${to.user}`;
    this.#likes.set(key, [...(this.#likes.get(key) ?? []), data.head]);
    return `${from.person.name} likes ${to.person.name}: ${to.person.own} head is ${data.head} now.`;
  }

  async takeLikeBack(from: Phone, to: Phone): Promise<string> {
    const key = `${from.user} ${to.user}`;
    const positions = this.#likes.get(key) ?? [];
    const at = positions.at(-1);
    if (at === undefined) return `${from.person.name} has not liked ${to.person.name} in this window.`;
    const { data } = await from.backend.POST("/v1/users/{user}/badges/{badge}/retract", {
      params: { path: { user: to.user, badge: LIKES }, header: { "Idempotency-Key": freshId() } },
      body: { at },
    });
    this.#likes.set(key, positions.slice(0, -1));
    return `${from.person.name} took like ${at} back. The head stays ${data.head}, and ${data.unread === 1 ? "one is" : `${data.unread} are`} unread.`;
  }

  async follow(from: Phone, to: Phone): Promise<string> {
    const params = { path: { user: from.user, target: to.user } };
    await from.app.PUT("/v1/users/{user}/following/{target}", { params, body: {} });
    return `${from.person.name} follows ${to.person.name}. Posts from now on count.`;
  }

  async unfollow(from: Phone, to: Phone): Promise<string> {
    const params = { path: { user: from.user, target: to.user } };
    await from.app.DELETE("/v1/users/{user}/following/{target}", { params });
    return `${from.person.name} no longer follows ${to.person.name}, whose posts count no more.`;
  }

  async post(from: Phone): Promise<string> {
    const { data } = await from.backend.PUT("/v1/users/{user}/posts/{post_id}", {
      params: { path: { user: from.user, post_id: freshId() } },
    });
    return `${from.person.name} posted. One row, whether three people follow or a million: the head is ${data.head}.`;
  }

  async message(from: Phone, to: Phone): Promise<string> {
    await from.app.POST("/v1/users/{user}/inbox", {
      params: { path: { user: to.user } },
      body: { sender_id: from.user, client_id: freshId(), content: `Hi ${to.person.name}, this is ${from.person.name}!` },
    });
    return `${from.person.name} wrote to ${to.person.name}.`;
  }

  async sayToGroup(from: Phone): Promise<string> {
    const group = await this.#groupOfThree(from);
    const { data } = await from.app.POST("/v1/groups/{group}/messages", {
      params: { path: { group } },
      body: { sender_id: from.user, client_id: freshId(), content: "Who is coming tonight?" },
    });
    return `${from.person.name} wrote to the group, whose head is ${data.seq}. Sending marks it as read for the sender.`;
  }

  /**
   * The group with the id of the first one. One that was there before is somebody's: nobody joins
   * it, and whoever else is in it gets no message of the console.
   */
  async #groupOfThree({ backend }: Phone): Promise<string> {
    const user_ids = this.people.map(({ id }) => id);
    const group = user_ids[0] ?? "";
    const params = { path: { group } };
    if (this.#group === "nothing") {
      const { response } = await backend.PUT("/v1/groups/{group}", { params, body: {} });
      if (response.status === 201) this.#group = "made";
      else if (await isOf(user_ids, group, backend)) this.#group = "complete";
      else throw new Error(`Group ${group} exists already and is not of these three alone. Take other users.`);
    }
    if (this.#group === "made") {
      await backend.POST("/v1/groups/{group}/members", { params, body: { user_ids } });
      this.#group = "complete";
    }
    return group;
  }

  /** To every user of the server. */
  async broadcast(from: Phone): Promise<string> {
    const { data } = await from.backend.POST("/v1/broadcasts/{channel}", {
      params: { path: { channel: NEWS }, header: { "Idempotency-Key": freshId() } },
      body: { title: "Maintenance tonight" },
    });
    return `One notice, one row, one head for everybody: ${data.seq}. Each phone has a mark of its own.`;
  }

  async openFeed(phone: Phone): Promise<string> {
    const params = { path: { user: phone.user } };
    const { data } = await phone.app.GET("/v1/users/{user}/feed", { params });
    const body = data?.token === undefined ? {} : { up_to: data.token };
    await phone.app.POST("/v1/users/{user}/feed/reset", { params, body });
    return `${phone.person.name} looked at the feed. The token says which posts were there.`;
  }

  /** Every chat up to what the phone was told is its end. */
  async openChats(phone: Phone): Promise<string> {
    const params = { path: { user: phone.user } };
    const [directs, groups] = await Promise.all([
      phone.app.GET("/v1/users/{user}/directs", { params }),
      phone.app.GET("/v1/users/{user}/groups", { params }),
    ]);
    const unreadDirects = directs.data.items.filter(({ unread }) => unread > 0);
    for (const { peer_id: peer, last_seq } of unreadDirects) {
      await phone.app.POST("/v1/users/{user}/directs/{peer}/read", {
        params: { path: { ...params.path, peer } },
        body: { up_to: last_seq },
      });
    }
    const unreadGroups = groups.data.items.filter(({ unread }) => unread > 0);
    for (const { group_id: group, head } of unreadGroups) {
      await phone.app.POST("/v1/users/{user}/groups/{group}/read", {
        params: { path: { ...params.path, group } },
        body: { up_to: head },
      });
    }
    const chats = unreadDirects.length + unreadGroups.length;
    return `${phone.person.name} read ${chats === 1 ? "one chat" : `${chats} chats`}.`;
  }
}

/** Whether just these are the members, as where another window has made the group. */
async function isOf(users: string[], group: string, headmark: Headmark): Promise<boolean> {
  const params = { path: { group }, query: { limit: users.length + 1 } };
  const { items } = (await headmark.GET("/v1/groups/{group}/members", { params })).data;
  return items.length === users.length && items.every(({ user_id }) => users.includes(user_id));
}

/** What a client makes once and sends again when it tries again. */
function freshId(): string {
  const parts = crypto.getRandomValues(new Uint32Array(2));
  return Array.from(parts, (part) => part.toString(36)).join("");
}
