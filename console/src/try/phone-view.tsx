// A phone: the number on the app's icon, a row for each kind of badge, and what its user can do.

import { useState } from "preact/hooks";
import { hrefOf } from "../route.js";
import { useStore } from "../store.js";
import { shortCount } from "../ui/format.js";
import { Strip } from "../ui/strip.js";
import type { Run } from "./guide-view.js";
import { LogView } from "./log-view.js";
import type { Phone } from "./phone.js";
import { type Row, rowsOf } from "./rows.js";
import type { World } from "./world.js";

const STATUS = {
  live: "live",
  loading: "connecting",
  retrying: "no answer, retrying",
  paused: "paused",
  failed: "stopped",
  idle: "off",
} as const;

export function PhoneView({ world, phone, run }: { world: World; phone: Phone; run: Run }) {
  const view = useStore(phone.view);
  // The rows show them, too.
  useStore(phone.streams);
  const { name } = phone.person;
  const total = view.summary?.total ?? 0;
  const trouble = view.trouble && view.trouble.status > 0 ? ` (${view.trouble.status} ${view.trouble.code})` : "";
  return (
    <section class="phone-and-log" aria-label={`${name}’s phone`}>
      <div class="phone">
        <header>
          <span class={`face ${name.toLowerCase()}`} aria-hidden="true">
            {name[0]}
          </span>
          <div class="who">
            <h2>{name}</h2>
            <a class="id" href={hrefOf("lookup", phone.user)} title={`Look up user ${phone.user}`}>
              user {phone.user}
            </a>
          </div>
          <span class={`state ${view.status}`}>
            {STATUS[view.status]}
            {trouble}
          </span>
          <span class="icon">
            <span class="sr">Total unread: </span>
            <b class={total > 0 ? "pill" : "pill zero"} data-total={total}>
              {shortCount(total)}
            </b>
          </span>
        </header>
        <ul class="rows">
          {rowsOf(world, phone).map((row) => (
            <li key={row.id}>
              <RowView row={row} onOpen={() => void run(() => row.open())} />
            </li>
          ))}
        </ul>
        <Actions world={world} phone={phone} run={run} />
      </div>
      <LogView phone={phone} />
    </section>
  );
}

function RowView({ row, onOpen }: { row: Row; onOpen: () => void }) {
  return (
    <button type="button" class="badge-row" onClick={onOpen} data-row={row.id}>
      <span class="label">
        {row.label} <span class="note">{row.note}</span>
      </span>
      <b class={row.unread > 0 ? "pill" : "pill zero"}>
        {row.lit === undefined ? shortCount(row.unread) : row.lit ? "lit" : "off"}
        <span class="sr"> {row.lit === undefined ? "unread" : ""}. Open</span>
      </b>
      {row.streams.map(({ name, stream }) => (
        <span class="stream" key={name}>
          {name !== "" && <span class="of">{name}</span>}
          <Strip stream={stream} name={name || row.label} />
        </span>
      ))}
    </button>
  );
}

function Actions({ world, phone, run }: { world: World; phone: Phone; run: Run }) {
  const others = world.others(phone);
  const streams = useStore(phone.streams);
  const [chosen, setChosen] = useState(others[0]?.user ?? "");
  const to = others.find(({ user }) => user === chosen);
  if (!to) return null;
  const isFollowing = streams?.feed.creators.some(({ user_id }) => user_id === to.user) ?? false;
  const { name } = phone.person;
  const select = `to-${phone.user}`;
  const button = (label: string, act: () => Promise<string>) => (
    <button type="button" onClick={() => void run(act)}>
      {label}
    </button>
  );
  return (
    <fieldset class="actions">
      <legend class="sr">What {name} does</legend>
      <div class="towards">
        <label for={select}>To</label>
        <div class="does">
          <select id={select} value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
            {others.map((other) => (
              <option key={other.user} value={other.user}>
                {other.person.name}
              </option>
            ))}
          </select>
          {button("Like", () => world.like(phone, to))}
          {button("Unlike", () => world.takeLikeBack(phone, to))}
          {isFollowing ? button("Unfollow", () => world.unfollow(phone, to)) : button("Follow", () => world.follow(phone, to))}
          {button("Message", () => world.message(phone, to))}
        </div>
      </div>
      <div class="towards">
        <span class="to-all">To all</span>
        <div class="does">
          {button("Post", () => world.post(phone))}
          {button("Group chat", () => world.sayToGroup(phone))}
          {button("Broadcast", () => world.broadcast(phone))}
        </div>
      </div>
    </fieldset>
  );
}
