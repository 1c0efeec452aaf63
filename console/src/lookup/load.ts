// Loading for a part of the page: each part has its own answer and its own trouble.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { sentenceOf } from "../problem.js";

export interface Loaded<Value> {
  value: Value | null;
  trouble: string | null;
  isLoading: boolean;
  /** Loads again; what is shown stays until then. */
  reload: () => void;
}

/** `load` runs at first, when it changes, and on `reload`. Answers to what was asked before are dropped. */
export function useLoad<Value>(load: () => Promise<Value>): Loaded<Value> {
  const [state, setState] = useState<Omit<Loaded<Value>, "reload">>({ value: null, trouble: null, isLoading: true });
  const asked = useRef(0);
  const reload = useCallback(() => {
    asked.current += 1;
    const own = asked.current;
    const isCurrent = () => own === asked.current;
    setState((before) => ({ ...before, isLoading: true }));
    load().then(
      (value) => isCurrent() && setState({ value, trouble: null, isLoading: false }),
      (error: unknown) => isCurrent() && setState({ value: null, trouble: sentenceOf(error), isLoading: false }),
    );
  }, [load]);
  useEffect(() => {
    reload();
    return () => {
      asked.current += 1;
    };
  }, [reload]);
  return { ...state, reload };
}

export interface Page<Item> {
  items: Item[];
  next_cursor?: string | null;
}

export interface Pages<Item> {
  items: Item[];
  trouble: string | null;
  isLoading: boolean;
  /** Null at the end of the list. */
  more: (() => void) | null;
}

/** A list that is read page by page, as far as somebody wants to see it. */
export function usePages<Item>(read: (cursor: string | null) => Promise<Page<Item>>): Pages<Item> {
  const [state, setState] = useState<{ items: Item[]; cursor: string | null; trouble: string | null; isLoading: boolean }>({
    items: [],
    cursor: null,
    trouble: null,
    isLoading: true,
  });
  const asked = useRef(0);
  const load = useCallback(
    (before: Item[], cursor: string | null) => {
      asked.current += 1;
      const own = asked.current;
      setState({ items: before, cursor, trouble: null, isLoading: true });
      read(cursor).then(
        (page) => {
          if (own !== asked.current) return;
          setState({ items: [...before, ...page.items], cursor: page.next_cursor ?? null, trouble: null, isLoading: false });
        },
        (error: unknown) => {
          if (own === asked.current) setState({ items: before, cursor, trouble: sentenceOf(error), isLoading: false });
        },
      );
    },
    [read],
  );
  useEffect(() => {
    load([], null);
    return () => {
      asked.current += 1;
    };
  }, [load]);
  const { items, cursor, trouble, isLoading } = state;
  const canGoOn = cursor !== null || trouble !== null;
  return { items, trouble, isLoading, more: canGoOn ? () => load(items, cursor) : null };
}
