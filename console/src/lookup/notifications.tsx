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
  { name: "Title", cell: ({ title }) => <bdi class="text">{title}</bdi> },
  { name: "Sent", cell: ({ created_at }) => <Time at={created_at} /> },
  { name: "Read", cell: ({ read_at }) => (read_at === undefined ? <b>unread</b> : <Time at={read_at} />) },
];

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
      <PagedTable
        pages={pages}
        caption="Notifications"
        columns={COLUMNS}
        keyOf={({ notification_id }) => notification_id}
        empty="No notification."
      />
    </Section>
  );
}
