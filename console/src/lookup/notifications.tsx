// The user's notifications, which are read one by one.

import type { Headmark } from "@headmark/client";
import { useCallback } from "preact/hooks";
import type { UserNotification } from "../terms.js";
import { Time } from "../ui/format.js";
import { usePages } from "./load.js";
import { type Column, Name, PagedTable, Section } from "./parts.js";

const PAGE = 20;

const COLUMNS: Column<UserNotification>[] = [
  { name: "Type", cell: ({ type }) => <Name text={type} /> },
  { name: "Title", cell: ({ title, group_key }) => <bdi class="text">{title ?? group_key}</bdi> },
  { name: "Actors", cell: ({ count, actors }) => (actors.length > 0 ? actorsOf(actors, count) : "–") },
  { name: "Newest", cell: ({ updated_at }) => <Time at={updated_at} /> },
  { name: "Seen", cell: ({ seen }) => (seen ? "seen" : <b>unseen</b>) },
  { name: "Read", cell: ({ read_at }) => (read_at === undefined ? <b>unread</b> : <Time at={read_at} />) },
];

/** The newest actors, and how many others there are. */
function actorsOf(actors: string[], count: number): string {
  const others = count - actors.length;
  return others > 0 ? `${actors.join(", ")} and ${others} more` : actors.join(", ");
}

export function NotificationsSection({ headmark, user }: { headmark: Headmark; user: string }) {
  const pages = usePages(
    useCallback(
      async (cursor: string | null) => {
        const params = { path: { user }, query: { limit: PAGE, ...(cursor === null ? {} : { cursor }) } };
        return (await headmark.GET("/v1/users/{user}/notifications", { params })).data;
      },
      [headmark, user],
    ),
  );
  return (
    <Section title="Notifications">
      <PagedTable pages={pages} caption="Notifications" columns={COLUMNS} keyOf={({ id }) => id} empty="No notification." />
    </Section>
  );
}
