// `@headmark/client/react`.

import { useCallback, useMemo, useSyncExternalStore } from "react";
import type { UnreadPoller } from "./poller/poller.js";
import type { UnreadView } from "./poller/types.js";

export interface Unread extends UnreadView {
  /** Shows a badge as read at once, and says so to the server. */
  reset: UnreadPoller["reset"];
  /** Polls now. */
  refresh: UnreadPoller["refresh"];
}

/** The unread summary of a poller. It polls while a component that uses it is mounted; all of them share its one loop. */
export function useUnread(poller: UnreadPoller): Unread {
  const subscribe = useCallback((listener: () => void) => poller.subscribe(listener), [poller]);
  const snapshot = () => poller.view;
  const view = useSyncExternalStore(subscribe, snapshot, snapshot);
  const reset = useCallback<Unread["reset"]>((kind, name, upTo) => poller.reset(kind, name, upTo), [poller]);
  const refresh = useCallback(() => poller.refresh(), [poller]);
  return useMemo(() => ({ ...view, reset, refresh }), [view, reset, refresh]);
}
