// What came for the user, and which devices have fetched it.

import { type Headmark, type InboxItem, ProblemError } from "@headmark/client";
import { useCallback, useState } from "preact/hooks";
import type { Device } from "../terms.js";
import { count, Time } from "../ui/format.js";
import { type Page, useLoad, usePages } from "./load.js";
import { type Column, Name, PagedTable, Section, Table, UserLink } from "./parts.js";

type Props = { headmark: Headmark; user: string };

const PAGE = 20;

const DEVICES: Column<Device>[] = [
  { name: "Device", cell: ({ device_id }) => <Name text={device_id} /> },
  { name: "Fetched up to", isNumber: true, cell: ({ cursor }) => (cursor === undefined ? "–" : count(cursor)) },
  { name: "Behind by", isNumber: true, cell: ({ lag = 0 }) => (lag > 0 ? <b class="warn">{count(lag)}</b> : count(lag)) },
  { name: "Push", cell: ({ push }) => (push ? "yes" : "no") },
  { name: "Last seen", cell: ({ last_seen_at }) => <Time at={last_seen_at} /> },
  { name: "First seen", cell: ({ created_at }) => <Time at={created_at} /> },
];

export function DevicesSection({ headmark, user }: Props) {
  const load = useCallback(
    async () => (await headmark.GET("/v1/users/{user}/devices", { params: { path: { user } } })).data,
    [headmark, user],
  );
  const { value, trouble, isLoading } = useLoad(load);
  return (
    <Section title="Devices" trouble={trouble} isLoading={isLoading}>
      {isLoading && value === null && <p class="muted">Loading…</p>}
      {value && (
        <Table
          caption="Devices"
          columns={DEVICES}
          items={value.items}
          keyOf={({ device_id }) => device_id}
          empty="No device has stored a cursor or asked for pushes."
        />
      )}
    </Section>
  );
}

/** The newest first, though the route reads upwards: a page is what ends where the page before began. */
async function readBackwards(headmark: Headmark, user: string, before: string | null): Promise<Page<InboxItem>> {
  const path = { user };
  const end = before === null ? (await headmark.GET("/v1/users/{user}/devices", { params: { path } })).data.head : Number(before);
  if (end === 0) return { items: [], next_cursor: null };
  const after = Math.max(0, end - PAGE);
  const { items, start } = await readFrom(headmark, user, after, end - after);
  return {
    items: items.filter(({ seq }) => seq <= end).reverse(),
    next_cursor: start > 0 && items.length > 0 ? String(start) : null,
  };
}

/** From `after`, or from the oldest item that is kept. */
async function readFrom(
  headmark: Headmark,
  user: string,
  after: number,
  limit: number,
): Promise<{ items: InboxItem[]; start: number }> {
  const read = async (from: number) =>
    (await headmark.GET("/v1/users/{user}/inbox", { params: { path: { user }, query: { after: from, limit } } })).data.items;
  try {
    return { items: await read(after), start: after };
  } catch (error) {
    const earliest = error instanceof ProblemError && error.code === "cursor_expired" ? error.problem?.earliest_seq : undefined;
    if (earliest === undefined) throw error;
    return { items: await read(earliest - 1), start: 0 };
  }
}

export function InboxSection({ headmark, user }: Props) {
  const [isShown, setShown] = useState(false);
  const pages = usePages(useCallback((cursor: string | null) => readBackwards(headmark, user, cursor), [headmark, user]));
  return (
    <Section title="Inbox" note="The newest first.">
      <label class="check">
        <input type="checkbox" checked={isShown} onChange={(event) => setShown(event.currentTarget.checked)} /> Show what was
        written
      </label>
      <PagedTable
        pages={pages}
        caption="Inbox"
        columns={columnsOf(isShown)}
        keyOf={({ seq }) => String(seq)}
        empty="Nothing has come for this user, or it has expired."
      />
    </Section>
  );
}

/** Private messages are not for everybody who helps. */
function columnsOf(isShown: boolean): Column<InboxItem>[] {
  return [
    { name: "Seq", isNumber: true, cell: ({ seq }) => count(seq) },
    {
      name: "From",
      cell: ({ sender_id, own }) =>
        own ? (
          <span class="muted">the user</span>
        ) : sender_id ? (
          <UserLink id={sender_id} />
        ) : (
          <span class="muted">not known</span>
        ),
    },
    { name: "In", cell: whereOf },
    { name: "Sent", cell: ({ sent_at }) => <Time at={sent_at} /> },
    { name: "Text", isWide: true, cell: (item) => textOf(item, isShown) },
  ];
}

function whereOf({ group_id, group_seq, peer_id }: InboxItem) {
  if (group_id !== undefined) return `group ${group_id}, ${group_seq}`;
  return peer_id === undefined ? "" : `direct with ${peer_id}`;
}

function textOf({ content, recall, recalled }: InboxItem, isShown: boolean) {
  if (recall !== undefined) return <i>recalls message {recall}</i>;
  if (recalled) return <i>recalled</i>;
  if (content === undefined) return "";
  return isShown ? <bdi class="text">{content}</bdi> : <span class="muted">{content.length} characters</span>;
}
