// Try it: three phones side by side.

import { NoAnswerError } from "@headmark/client";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Name } from "../lookup/parts.js";
import { sentenceOf } from "../problem.js";
import { hrefOf } from "../route.js";
import type { Session } from "../session.js";
import { Guide, type Run, type Said } from "./guide-view.js";
import { parseUsers, peopleOf } from "./people.js";
import { PhoneView } from "./phone-view.js";
import { World } from "./world.js";

/** Nobody knows whether the server did what was asked before it went away. */
const BACK: Said = { text: "The server answers again. The last action may not have happened.", isTrouble: false };

export function TryPage({ session, isOpen, users }: { session: Session; isOpen: boolean; users: string | null }) {
  // A server with credentials may be the one that a product runs on: it is not written to unasked.
  const [isStarted, setStarted] = useState(isOpen || session.startedUsers === (users ?? ""));
  const isWrong = users !== null && parseUsers(users) === null;
  const start = () => {
    session.startedUsers = users ?? "";
    setStarted(true);
  };
  return (
    <>
      <div class="head">
        <h1>Three phones, one server</h1>
        <p class="lead">
          A <b>head</b> counts how many things ever happened. A <b>mark</b> is how far a user has read. <b>Unread</b> is the
          difference, less what was taken back.
        </p>
      </div>
      {isWrong ? (
        <NotThreeUsers users={users} />
      ) : isStarted ? (
        <Phones session={session} isOpen={isOpen} users={users} />
      ) : (
        <Consent users={users} onStart={start} />
      )}
    </>
  );
}

function Phones({ session, isOpen, users }: { session: Session; isOpen: boolean; users: string | null }) {
  const world = useMemo(() => new World(session, users), [session, users]);
  const [said, setSaid] = useState<Said | null>(null);
  useEffect(() => {
    world.start();
    // What was said of a server that is away is over when a phone hears from it.
    const unsubscribes = world.phones.map(({ log }) => log.onAnswer(() => setSaid((said) => (said?.isAway ? BACK : said))));
    return () => {
      for (const unsubscribe of unsubscribes) unsubscribe();
      world.stop();
    };
  }, [world]);
  const run: Run = async (act) => {
    try {
      setSaid({ text: await act(), isTrouble: false });
      return true;
    } catch (error) {
      setSaid({ text: sentenceOf(error), isTrouble: true, isAway: error instanceof NoAnswerError });
      return false;
    } finally {
      for (const phone of world.phones) phone.wake();
    }
  };
  return (
    <>
      <Guide world={world} said={said} run={run} />
      <div class="phones">
        {world.phones.map((phone) => (
          <PhoneView key={phone.user} world={world} phone={phone} run={run} />
        ))}
      </div>
      <OtherUsers isOpen={isOpen} users={world.people.map(({ id }) => id).join(", ")} />
    </>
  );
}

function NotThreeUsers({ users }: { users: string | null }) {
  return (
    <section class="card narrow" role="alert">
      <h2>These are not three users</h2>
      <p>
        The address names <Name text={users ?? ""} />. It must name three different ids, as in <code>#/try/7,8,9</code>.
      </p>
      <a href={hrefOf("try")}>Take the usual three</a>
    </section>
  );
}

function Consent({ users, onStart }: { users: string | null; onStart: () => void }) {
  const ids = peopleOf(users).map(({ id }) => id);
  return (
    <section class="card narrow">
      <h2>This writes to the server</h2>
      <p>
        The phones are those of the users {ids.join(", ")}. Their group chat is the group {ids[0]}: the console makes it, and
        leaves one alone that has other members. A broadcast goes to <b>every user of this server</b>. So use a server on which
        nobody minds.
      </p>
      <div class="row">
        <button type="button" class="primary" onClick={onStart}>
          Start the phones
        </button>
        <a href={hrefOf("lookup")}>Look up a user instead</a>
      </div>
    </section>
  );
}

function OtherUsers({ isOpen, users }: { isOpen: boolean; users: string }) {
  const [text, setText] = useState(users);
  const [isWrong, setWrong] = useState(false);
  // As the server itself says it when it starts.
  const key = isOpen ? "" : '-H "authorization: Bearer $KEY" ';
  const submit = (event: Event) => {
    event.preventDefault();
    const ids = parseUsers(text);
    setWrong(ids === null);
    if (ids) location.hash = hrefOf("try", ids.join(","));
  };
  return (
    <details class="card more">
      <summary>Other users, another window, your own requests</summary>
      <p>Open this page in a second window: both show the same users and stay in step. Or write to them from a terminal:</p>
      <pre tabIndex={0}>
        <code>{`curl ${key}-X POST ${location.origin}/v1/users/${users.split(",")[0]}/badges/like/increment`}</code>
      </pre>
      {!isOpen && (
        <p class="muted">
          <code>$KEY</code> is the secret of a service key, the part after the colon.
        </p>
      )}
      <form class="row" onSubmit={submit}>
        <label for="users">Users</label>
        <input
          id="users"
          value={text}
          inputMode="numeric"
          aria-invalid={isWrong ? true : undefined}
          aria-describedby="users-note"
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit">Show these</button>
        <span id="users-note" class={isWrong ? "trouble" : "muted"} role={isWrong ? "alert" : undefined}>
          Three different ids, 1 to 9223372036854775807
        </span>
      </form>
    </details>
  );
}
