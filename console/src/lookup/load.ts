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
  /** Whether somebody has called `more` for this list. */
  wasAskedForMore: boolean;
  /** Null at the end of the list. */
  more: (() => void) | null;
}

interface PagesState<Item> extends Omit<Pages<Item>, "more"> {
  cursor: string | null;
}

/** A list that is read page by page, as far as somebody wants to see it. */
export function usePages<Item>(read: (cursor: string | null) => Promise<Page<Item>>): Pages<Item> {
  const [state, setState] = useState<PagesState<Item>>({
    items: [],
    cursor: null,
    trouble: null,
    isLoading: true,
    wasAskedForMore: false,
  });
  const asked = useRef(0);
  const load = useCallback(
    (before: Item[], cursor: string | null, wasAskedForMore: boolean) => {
      asked.current += 1;
      const own = asked.current;
      const asBefore = { items: before, cursor, trouble: null, isLoading: false, wasAskedForMore };
      setState({ ...asBefore, isLoading: true });
      read(cursor).then(
        ({ items, next_cursor: next = null }) => {
          if (own === asked.current) setState({ ...asBefore, items: [...before, ...items], cursor: next });
        },
        (error: unknown) => {
          if (own === asked.current) setState({ ...asBefore, trouble: sentenceOf(error) });
        },
      );
    },
    [read],
  );
  useEffect(() => {
    load([], null, false);
    return () => {
      asked.current += 1;
    };
  }, [load]);
  const { cursor, ...shown } = state;
  const { items, trouble, isLoading, wasAskedForMore } = shown;
  const canGoOn = cursor !== null || trouble !== null || (isLoading && wasAskedForMore);
  return { ...shown, more: canGoOn ? () => isLoading || load(items, cursor, true) : null };
}
