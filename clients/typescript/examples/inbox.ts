import { createHeadmark, type InboxItem, type InboxPosition, InboxReader, type InboxStatus } from "@headmark/client";

/** The app's own database. */
interface Database {
  /** Made once for each installation, such as with `crypto.randomUUID()`, and kept. */
  deviceId: string;
  position: InboxPosition | null;
  /**
   * Stores items under the epoch of the position. One that comes again after a reset replaces its earlier copy, which
   * has the same `seq` and `sent_at`.
   */
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
