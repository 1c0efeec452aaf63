// The picture of a stream: the newest positions as cells, and where the mark stands.

import { count } from "./format.js";

export interface Stream {
  head: number;
  mark: number;
  /** Positions above the mark that were taken back, such as "4 7-9". */
  retracted?: string;
  /** How many positions above the mark do not count, where the server does not say which. */
  gone?: number;
}

const CELLS = 8;

export function Strip({ stream, name }: { stream: Stream; name: string }) {
  const { head, mark, retracted = "", gone = 0 } = stream;
  const first = Math.max(1, head - CELLS + 1);
  const cells = Array.from({ length: head - first + 1 }, (_, at) => first + at);
  const takenBack = positions(retracted, first, head);
  // Where some are gone, the page cannot tell which. Where all are, it can.
  const aboveMark = gone > 0 && gone >= head - mark ? "gone" : "unread";
  const stateOf = (position: number) => (takenBack.has(position) ? "gone" : position > mark ? aboveMark : "read");
  const goneInAll = gone + sizeOf(retracted);
  return (
    <span
      class="strip"
      role="img"
      aria-label={`${name}: mark ${mark}, head ${head}${goneInAll > 0 ? `, ${goneInAll} gone` : ""}`}
    >
      <span class="cells">
        {first > 1 && <i class={`cell ${stateOf(first - 1)}`}>…</i>}
        {cells.map((position) => (
          <i key={position} class={`cell ${stateOf(position)}`}>
            {position}
          </i>
        ))}
        {head === 0 && <i class="cell none">–</i>}
      </span>
      <span class="ends">
        mark {count(mark)} · head {count(head)}
        {gone > 0 && ` · ${count(gone)} gone`}
      </span>
    </span>
  );
}

/** The positions of "4 7-9" from `first` to `last`; a range may be long, what is shown is not. */
export function positions(text: string, first: number, last: number): Set<number> {
  const found = new Set<number>();
  for (const part of text.split(" ").filter(Boolean)) {
    const [from = 0, to = from] = part.split("-").map(Number);
    for (let at = Math.max(from, first); at <= Math.min(to, last); at += 1) found.add(at);
  }
  return found;
}

/** How many positions "4 7-9" names. */
export function sizeOf(text: string): number {
  let size = 0;
  for (const part of text.split(" ").filter(Boolean)) {
    const [from = 0, to = from] = part.split("-").map(Number);
    size += to - from + 1;
  }
  return size;
}
