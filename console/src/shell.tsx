// The frame around the three parts: navigation, access, and what stands in the way of showing a part.

import { useEffect, useRef } from "preact/hooks";
import { HealthPage } from "./health/page.js";
import { KeyForm } from "./key-form.js";
import { LookupPage } from "./lookup/page.js";
import { hrefOf, type Part, type Route } from "./route.js";
import type { Access, Session } from "./session.js";
import { type Store, useStore } from "./store.js";
import { TryPage } from "./try/page.js";
import { isUserId } from "./try/people.js";

const PARTS: { part: Part; name: string }[] = [
  { part: "try", name: "Try it" },
  { part: "lookup", name: "Look up" },
  { part: "health", name: "Health" },
];

export function Shell({ session, route }: { session: Session; route: Store<Route> }) {
  const access = useStore(session.access);
  const { part, argument } = useStore(route);
  const main = useRef<HTMLElement>(null);
  const partName = PARTS.find((entry) => entry.part === part)?.name ?? "No such page";
  // A support engineer has a tab for each user.
  const name = part === "lookup" && argument !== null && isUserId(argument) ? `User ${argument}` : partName;
  useEffect(() => {
    document.title = `${name} · Headmark console`;
  }, [name]);
  return (
    <>
      <header class="top">
        <a class="skip" href={hrefOf(part ?? "try", argument ?? undefined)} onClick={(event) => skipTo(event, main.current)}>
          Skip to the content
        </a>
        <p class="brand">
          <Logo /> Headmark <span class="muted">console</span>
        </p>
        <nav aria-label="Parts of the console">
          {PARTS.map((entry) => (
            <a key={entry.part} href={hrefOf(entry.part)} aria-current={entry.part === part ? "page" : undefined}>
              {entry.name}
            </a>
          ))}
        </nav>
        <AccessNote access={access} session={session} />
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <Content access={access} session={session} part={part} argument={argument} />
      </main>
      <footer class="bottom">
        <a href="/docs/">Every route</a>
        <a href="/openapi.json">OpenAPI document</a>
        <a href="/metrics">Metrics</a>
      </footer>
    </>
  );
}

/** The hash names the part, so that a link to a place on the page would leave it. */
function skipTo(event: Event, main: HTMLElement | null): void {
  event.preventDefault();
  main?.focus();
}

function Content({ access, session, part, argument }: { access: Access; session: Session } & Route) {
  if (part === null) return <NoSuchPage />;
  // Health needs no key today, and is most useful when the rest does not work.
  if (part === "health") return <HealthPage session={session} />;
  switch (access.state) {
    case "asking":
      return <p class="muted center">Asking the server…</p>;
    case "away":
      return (
        <section class="card narrow" role="status">
          <h1>The server is away</h1>
          <p>{access.reason}</p>
          <p class="muted">This page tries again every two seconds.</p>
        </section>
      );
    case "key_needed":
      return <KeyForm session={session} reason={access.reason} />;
    case "ready":
      // Another key is another caller: nothing of the one before is kept.
      return part === "lookup" ? (
        <LookupPage key={access.key ?? ""} session={session} user={argument} />
      ) : (
        <TryPage key={`${access.key ?? ""} ${argument ?? ""}`} session={session} isOpen={access.key === null} users={argument} />
      );
  }
}

function NoSuchPage() {
  return (
    <section class="card narrow">
      <h1>There is no such page</h1>
      <p>
        The address ends in{" "}
        <code>
          <bdi>{location.hash}</bdi>
        </code>
        . The console has three parts: <a href={hrefOf("try")}>Try it</a>, <a href={hrefOf("lookup")}>Look up</a> and{" "}
        <a href={hrefOf("health")}>Health</a>.
      </p>
    </section>
  );
}

function AccessNote({ access, session }: { access: Access; session: Session }) {
  if (access.state === "asking" || access.state === "away") return <span class="access muted">…</span>;
  const isReady = access.state === "ready";
  if (access.key === null) return <span class="access muted">{isReady ? "Open server" : "No key"}</span>;
  return (
    <span class="access">
      <span class="muted">{isReady ? "Service key" : "Refused key"}</span>{" "}
      <button type="button" class="quiet" onClick={() => session.forget()}>
        Forget it
      </button>
    </span>
  );
}

function Logo() {
  return (
    <svg class="logo" viewBox="0 0 16 16" aria-hidden="true">
      <rect width="16" height="16" rx="4" />
      <path d="M4 4v8m0-4h5m0-1v5" />
      <circle cx="11" cy="5" r="3" />
    </svg>
  );
}
