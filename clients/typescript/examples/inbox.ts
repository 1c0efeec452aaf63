import { createHeadmark, type InboxItem, type InboxPosition, InboxReader, type InboxStatus } from "@headmark/client";

/** The app's own database. */
interface Database {
  /** Made once for each installation, such as with `crypto.randomUUID()`, and kept. */
  deviceId: string;
  position: InboxPosition | null;
  /** Items are known by their epoch and `seq`. The first of another epoch replaces those not older than itself. */
  store(items: InboxItem[], position: InboxPosition): Promise<void>;
  forgetPosition(): Promise<void>;
}

declare function getToken(options: { fresh: boolean }): Promise<string>;

export function readInbox(db: Database, showStatus: (status: InboxStatus) => void): InboxReader {
  const reader = new InboxReader({
    headmark: createHeadmark({
      baseUrl: "https://badges.example",
      token: (isRejected) => getToken({ fresh: isRejected }), // called again with `true` after a 401
    }),
    device: db.deviceId,
    position: db.position,
    onItems: (items, position) => db.store(items, position), // in one transaction
    onReset: () => db.forgetPosition(), // and keep the items
    onStatus: showStatus, // `failed`: sign in again, then call `refresh()`
  });
  reader.start();
  return reader;
}
