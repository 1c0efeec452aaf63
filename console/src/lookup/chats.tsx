// The user's groups and direct chats.

import type { Headmark } from "@headmark/client";
import { useCallback } from "preact/hooks";
import type { Direct, UserGroup } from "../terms.js";
import { count, Time } from "../ui/format.js";
import { usePages } from "./load.js";
import { type Column, PagedTable, Section, UserLink } from "./parts.js";

type Props = { headmark: Headmark; user: string };

const PAGE = 20;

const GROUPS: Column<UserGroup>[] = [
  { name: "Group", cell: ({ group_id }) => <code>{group_id}</code> },
  { name: "Unread", isNumber: true, cell: ({ unread }) => <b>{count(unread)}</b> },
  { name: "Head", isNumber: true, cell: ({ head }) => count(head) },
  { name: "Mentions", isNumber: true, cell: ({ mentions }) => count(mentions) },
  { name: "Read up to", isNumber: true, cell: ({ read_seq }) => count(read_seq) },
  { name: "Counts", cell: ({ level }) => level },
  { name: "Last read", cell: ({ last_access_at }) => <Time at={last_access_at} /> },
];

const DIRECTS: Column<Direct>[] = [
  { name: "With", cell: ({ peer_id }) => <UserLink id={peer_id} /> },
  { name: "Unread", isNumber: true, cell: ({ unread }) => <b>{count(unread)}</b> },
  { name: "Last inbox item", isNumber: true, cell: ({ last_seq }) => count(last_seq) },
  { name: "Read up to", isNumber: true, cell: ({ read_seq }) => count(read_seq) },
  { name: "Level", cell: ({ level }) => <code>{level}</code> },
  { name: "Level ends", cell: ({ level_until }) => (level_until === undefined ? "" : <Time at={level_until} />) },
  { name: "Last message", cell: ({ last_at }) => (last_at === undefined ? "" : <Time at={last_at} />) },
];

export function ChatsSection({ headmark, user }: Props) {
  const groups = usePages(
    useCallback(
      async (cursor: string | null) => (await headmark.GET("/v1/users/{user}/groups", { params: paramsOf(user, cursor) })).data,
      [headmark, user],
    ),
  );
  const directs = usePages(
    useCallback(
      async (cursor: string | null) => (await headmark.GET("/v1/users/{user}/directs", { params: paramsOf(user, cursor) })).data,
      [headmark, user],
    ),
  );
  return (
    <Section title="Chats">
      <h3>Groups</h3>
      <PagedTable pages={groups} caption="Groups" columns={GROUPS} keyOf={({ group_id }) => group_id} empty="In no group." />
      <h3>Direct chats</h3>
      <PagedTable
        pages={directs}
        caption="Direct chats"
        columns={DIRECTS}
        keyOf={({ peer_id }) => peer_id}
        empty="No direct chat."
      />
    </Section>
  );
}

function paramsOf(user: string, cursor: string | null) {
  return { path: { user }, query: { limit: PAGE, ...(cursor === null ? {} : { cursor }) } };
}
