import { createHeadmark, UnreadPoller } from "@headmark/client";
import { useUnread } from "@headmark/client/react";

const headmark = createHeadmark({ baseUrl: "http://127.0.0.1:8080" });
const poller = new UnreadPoller({ headmark, user: "42" });

export function Badge() {
  const { summary, status, reset } = useUnread(poller);
  const unread = summary?.counters?.mention?.unread ?? 0;
  return (
    <button type="button" onClick={() => reset("counters", "mention")}>
      Mentions {unread > 0 && <b>{unread}</b>} {status === "retrying" && "(no connection)"}
    </button>
  );
}
