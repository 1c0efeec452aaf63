// Where the service key is typed in.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { Session } from "./session.js";

export function KeyForm({ session, reason }: { session: Session; reason: string | null }) {
  const input = useRef<HTMLInputElement>(null);
  const isRefused = reason !== null;
  useLayoutEffect(() => {
    if (input.current === null) return;
    input.current.focus();
    // A refused key stays there to be corrected, until it is forgotten.
    if (!isRefused) input.current.value = "";
  }, [isRefused]);
  const submit = (event: Event) => {
    event.preventDefault();
    const key = input.current?.value.trim();
    if (key) session.use(key);
  };
  return (
    <section class="card narrow">
      <h1>A service key, please</h1>
      <p>This server requires credentials. The console acts as a backend of yours does, with a service key.</p>
      <form onSubmit={submit} class="row">
        <label for="key">Service key</label>
        <input
          id="key"
          ref={input}
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          aria-describedby="key-note"
          aria-invalid={isRefused ? true : undefined}
        />
        <button type="submit" class="primary">
          Open the console
        </button>
      </form>
      {isRefused && (
        <p class="trouble" role="alert">
          {reason}
        </p>
      )}
      <p id="key-note" class="muted">
        The key stays in this page and goes to this server alone. A reload asks for it again.{" "}
        <code class="command">headmark token --service NAME</code> makes one.
      </p>
    </section>
  );
}
