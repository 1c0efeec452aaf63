// A user about whom there is something of everything.

import type { Headmark } from "@headmark/client";

/** Text that would show if anybody took it for HTML. */
export const HOSTILE = '<img src=x onerror="alert(1)"><b>bold</b>';

export const LONGEST = "9223372036854775807";

/** More than one page of followers, chats and messages. */
export const FOLLOWERS = 45;
const MESSAGES = 45;

export async function seed(headmark: Headmark, user: string): Promise<void> {
  const path = { user };
  const badge = { path: { user, badge: "like" } };
  await headmark.GET("/v1/users/{user}/badges", { params: { path } });
  await headmark.POST("/v1/users/{user}/badges/{badge}/increment", { params: badge, body: { by: 7 } });
  await headmark.POST("/v1/users/{user}/badges/{badge}/reset", { params: badge, body: { up_to: 3 } });
  await headmark.POST("/v1/users/{user}/badges/{badge}/retract", { params: badge, body: { at: 5 } });
  for (let at = 1; at <= FOLLOWERS; at += 1) {
    const params = { path: { user: String(10_000 + at), target: user } };
    await headmark.PUT("/v1/users/{user}/following/{target}", { params, body: {} });
  }
  await headmark.PUT("/v1/users/{user}/following/{target}", {
    params: { path: { user, target: LONGEST } },
    body: { visibility: "secret" },
  });
  await headmark.PUT("/v1/users/{user}/posts/{post_id}", { params: { path: { user: LONGEST, post_id: `post-${user}` } } });
  await headmark.PUT("/v1/users/{user}/blocks/{target}", { params: { path: { user, target: "77" } } });
  await headmark.PUT("/v1/groups/{group}", { params: { path: { group: user } }, body: {} });
  await headmark.POST("/v1/groups/{group}/members", { params: { path: { group: user } }, body: { user_ids: [user, "10001"] } });
  await headmark.POST("/v1/groups/{group}/messages", {
    params: { path: { group: user } },
    body: { sender_id: "10001", client_id: `g-${user}`, content: HOSTILE },
  });
  for (let at = 1; at <= MESSAGES; at += 1) {
    const content = at === MESSAGES ? HOSTILE : `Message ${at}`;
    const body = { sender_id: at % 2 === 0 ? "10002" : LONGEST, client_id: `c-${user}-${at}`, content };
    await headmark.POST("/v1/users/{user}/inbox", { params: { path }, body });
  }
  const device = { path: { user, device_id: "x".repeat(128) } };
  await headmark.PUT("/v1/users/{user}/devices/{device_id}/cursor", { params: device, body: { seq: 40 } });
  await headmark.POST("/v1/notifications", { body: { type: "notice", title: HOSTILE, content: HOSTILE, recipients: [user] } });
}
