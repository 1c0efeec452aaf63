// Look up: everything about one user that explains what the user sees.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { hrefOf } from "../route.js";
import type { Session } from "../session.js";
import { isUserId } from "../try/people.js";
import { ChatsSection } from "./chats.js";
import { DevicesSection, InboxSection } from "./inbox.js";
import { NotificationsSection } from "./notifications.js";
import { RelationsSection } from "./relations.js";
import { SummarySection } from "./summary.js";

const QUESTIONS = [
  {
    asks: "“My badge shows 5, and there is nothing.”",
    look: "The unread summary, explained: head, mark and what was taken back.",
  },
  {
    asks: "“I was not told of her post.”",
    look: "Relations: does the user follow her, since when? Then the feed’s line of her.",
  },
  { asks: "“My phone does not get messages.”", look: "Devices: is one behind, or not seen for days? Then the inbox." },
];

export function LookupPage({ session, user }: { session: Session; user: string | null }) {
  // Counts up when the same user is asked for again: everything loads anew.
  const [asked, setAsked] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  // Before the page is painted, so that no digit is lost that is typed at once.
  useLayoutEffect(() => {
    if (input.current) input.current.value = user ?? "";
    if (user === null) input.current?.focus();
  }, [user]);
  const submit = (event: Event) => {
    event.preventDefault();
    const wanted = input.current?.value.trim();
    if (!wanted) return;
    setAsked(asked + 1);
    location.hash = hrefOf("lookup", wanted);
  };
  return (
    <>
      <div class="head">
        <h1>
          {user === null ? (
            "Look up a user"
          ) : (
            <>
              User <bdi class="long">{user}</bdi>
            </>
          )}
        </h1>
        <search>
          <form class="row" onSubmit={submit}>
            <label for="user">User id</label>
            <input id="user" ref={input} inputMode="numeric" autocomplete="off" required maxLength={40} />
            <button type="submit" class="primary">
              {user === null ? "Look up" : "Look again"}
            </button>
          </form>
        </search>
      </div>
      {user === null ? <Questions /> : <Everything key={`${user} ${asked}`} session={session} user={user} />}
    </>
  );
}

function Everything({ session, user }: { session: Session; user: string }) {
  const headmark = useMemo(() => session.headmark(), [session]);
  if (!isUserId(user)) {
    return (
      <p class="trouble card" role="alert">
        A user id is a whole number from 1 to 9223372036854775807.
      </p>
    );
  }
  return (
    <>
      <SummarySection headmark={headmark} user={user} />
      <RelationsSection headmark={headmark} user={user} />
      <ChatsSection headmark={headmark} user={user} />
      <DevicesSection headmark={headmark} user={user} />
      <NotificationsSection headmark={headmark} user={user} />
      <InboxSection headmark={headmark} user={user} />
      <p class="muted">
        Looking counts as a visit: a user whom the server has never seen is known from now on, and broadcasts sent before do not
        count.
      </p>
    </>
  );
}

function Questions() {
  return (
    <section class="card">
      <h2>When somebody complains</h2>
      <dl class="questions">
        {QUESTIONS.map(({ asks, look }) => (
          <div key={asks}>
            <dt>{asks}</dt>
            <dd>{look}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
