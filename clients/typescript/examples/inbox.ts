import { createHeadmark, type InboxItem, type InboxPosition, InboxReader } from "@headmark/client";

/** The app's own database. */
interface Database {
  position: InboxPosition | null;
  store(items: InboxItem[], position: InboxPosition): Promise<void>;
  clear(): Promise<void>;
}

export function readInbox(db: Database, token: string): InboxReader {
  const reader = new InboxReader({
    headmark: createHeadmark({ baseUrl: "https://badges.example", token }),
    device: "phone-1",
    position: db.position,
    onItems: (items, position) => db.store(items, position), // in one transaction
    onReset: () => db.clear(),
  });
  reader.start();
  return reader;
}
