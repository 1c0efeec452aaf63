// From where a number counts, where its terms hold two positions.

import type { Explain } from "./terms.js";

type Channel = Explain["broadcasts"][string];
type Group = Explain["chats"]["groups"][number];

/** What was sent before the user came counts as read. */
export function markOfChannel({ mark, seq_at_enrolment }: Channel): number {
  return Math.max(mark, seq_at_enrolment);
}

/** While messages are unread again, the one before them stands for `read_seq`. */
export function markOfGroup({ read_seq, unread_from }: Group): number {
  return unread_from === undefined ? read_seq : unread_from - 1;
}
