// A value that changes over time, and the hook that shows it.

import { useEffect, useRef, useState } from "preact/hooks";

export class Store<Value> {
  #value: Value;
  readonly #listeners = new Set<() => void>();

  constructor(value: Value) {
    this.#value = value;
  }

  get value(): Value {
    return this.#value;
  }

  set(value: Value): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of [...this.#listeners]) listener();
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** The value now; the component renders again when it changes. */
export function useStore<Value>(store: Store<Value>): Value {
  const [, render] = useState({});
  const shown = useRef(store.value);
  shown.current = store.value;
  useEffect(() => {
    const stop = store.subscribe(() => render({}));
    // Effects run after the page was painted: the value may have changed since it was rendered.
    if (!Object.is(shown.current, store.value)) render({});
    return stop;
  }, [store]);
  return store.value;
}
