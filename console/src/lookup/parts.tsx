// What the parts of Look up share: a section, a table, a link to another user.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { hrefOf } from "../route.js";
import type { Pages } from "./load.js";

interface SectionProps {
  title: string;
  note?: string;
  trouble?: string | null;
  isLoading?: boolean;
  children: ComponentChildren;
}

export function Section({ title, note, trouble, isLoading = false, children }: SectionProps) {
  return (
    <section class="card" aria-label={title} aria-busy={isLoading}>
      <h2>{title}</h2>
      {note !== undefined && <p class="muted note-line">{note}</p>}
      {trouble != null && (
        <p class="trouble" role="alert">
          {trouble}
        </p>
      )}
      {children}
    </section>
  );
}

export interface Column<Item> {
  name: string;
  /** Numbers stand to the right. */
  isNumber?: boolean;
  /** Takes the room that the others leave. */
  isWide?: boolean;
  cell(item: Item): ComponentChildren;
}

interface TableProps<Item> {
  caption: string;
  columns: Column<Item>[];
  items: Item[];
  keyOf(item: Item): string;
  /** What stands there instead of an empty table. */
  empty: string;
}

export function Table<Item>({ caption, columns, items, keyOf, empty }: TableProps<Item>) {
  if (items.length === 0) return <p class="muted">{empty}</p>;
  return (
    // A wide table scrolls in itself, also by keyboard.
    <section class="scroll" aria-label={`Table: ${caption}`} tabIndex={0}>
      <table>
        <caption class="sr">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ name, isNumber, isWide }) => (
              <th key={name} scope="col" class={isNumber ? "num" : isWide ? "wide" : ""}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={keyOf(item)}>
              {columns.map(({ name, isNumber, isWide, cell }) => (
                <td key={name} class={isNumber ? "num" : isWide ? "wide" : ""}>
                  {cell(item)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export function PagedTable<Item>({ pages, empty, ...table }: Omit<TableProps<Item>, "items"> & { pages: Pages<Item> }) {
  const { items, trouble, isLoading, wasAskedForMore, more } = pages;
  return (
    <>
      {(items.length > 0 || !(isLoading || trouble)) && <Table {...table} items={items} empty={empty} />}
      {trouble !== null && (
        <p class="trouble" role="alert">
          {trouble}
        </p>
      )}
      {isLoading && !more && <p class="muted">Loading…</p>}
      {more && (
        // It stays while it loads, and is never disabled: the focus would be lost.
        <button type="button" aria-disabled={isLoading} onClick={more}>
          {isLoading ? "Loading…" : trouble === null ? "Show more" : "Try again"}
        </button>
      )}
      {!more && wasAskedForMore && <End />}
    </>
  );
}

/** Stands where the button was, and has its focus. */
function End() {
  const end = useRef<HTMLParagraphElement>(null);
  useLayoutEffect(() => {
    // Whoever is elsewhere meanwhile stays there.
    if (document.activeElement === document.body) end.current?.focus();
  }, []);
  return (
    <p class="muted" ref={end} tabIndex={-1}>
      This is all.
    </p>
  );
}

/** A name that somebody gave: in one piece, and kept from the texts around it. */
export function Name({ text }: { text: string }) {
  return (
    <code>
      <bdi>{text}</bdi>
    </code>
  );
}

export function UserLink({ id }: { id: string }) {
  return (
    <a class="user" href={hrefOf("lookup", id)}>
      {id}
    </a>
  );
}

export function YesNo({ is }: { is: boolean | undefined }) {
  return is ? <b>yes</b> : <span class="muted">no</span>;
}
