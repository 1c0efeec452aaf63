// The requests of a phone, the newest first.

import { useEffect, useState } from "preact/hooks";
import { useStore } from "../store.js";
import { duration } from "../ui/format.js";
import type { Phone } from "./phone.js";
import type { Entry } from "./request-log.js";

const SHOWN = 12;

export function LogView({ phone }: { phone: Phone }) {
  const entries = useStore(phone.log.entries);
  const isHeld = entries.some((entry) => entry.end === null);
  useTick(isHeld);
  const title = `Requests of ${phone.person.name}’s phone`;
  return (
    <section class="log" aria-label={title} tabIndex={0}>
      <h3>Requests</h3>
      <ol>
        {entries.slice(0, SHOWN).map((entry) => (
          <EntryView key={entry.id} entry={entry} />
        ))}
      </ol>
    </section>
  );
}

function EntryView({ entry }: { entry: Entry }) {
  const { method, path, end, isBackend } = entry;
  const tag = end?.tag ?? null;
  return (
    <li class={end === null ? "open" : ""}>
      <p class="request">
        <b>{method}</b> <code>{path.replace(/^\/v1/, "")}</code>
        {isBackend && <span class="by"> from the backend</span>}
      </p>
      <p class="answer">
        <Answer entry={entry} />
        {end?.revision != null && <span>revision {end.revision}</span>}
        {tag !== null && (
          <span>
            tag <code title={tag}>{shortTag(tag)}</code>
          </span>
        )}
      </p>
    </li>
  );
}

function Answer({ entry }: { entry: Entry }) {
  const { end, waitS, startedAt } = entry;
  if (end === null) {
    const s = Math.floor((performance.now() - startedAt) / 1_000);
    return <span class="chip held">{waitS > 0 ? `held ${s} s` : "sent"}</span>;
  }
  const { status, tookMs } = end;
  const kind = typeof status === "number" && status < 400 ? (status === 304 ? "same" : "ok") : "bad";
  return (
    <>
      <span class={status === "stopped" ? "chip same" : `chip ${kind}`}>{status}</span>{" "}
      <span class="took">{duration(tookMs / 1_000)}</span>
    </>
  );
}

/** Its end differs from tag to tag; its start says whose it is. */
function shortTag(tag: string): string {
  const inner = tag.replace(/^W\//, "").replaceAll('"', "");
  return inner.length > 12 ? `…${inner.slice(-10)}` : inner;
}

/** Renders again each second while something is on its way. */
function useTick(isOn: boolean): void {
  const [, render] = useState(0);
  useEffect(() => {
    if (!isOn) return;
    const timer = setInterval(() => render((at) => at + 1), 1_000);
    return () => clearInterval(timer);
  }, [isOn]);
}
