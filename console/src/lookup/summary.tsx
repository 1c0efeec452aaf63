// Why a number is what it is: the unread summary with its explanation.

import type { Headmark, UnreadSummary } from "@headmark/client";
import { useCallback } from "preact/hooks";
import type { Explain } from "../terms.js";
import { count } from "../ui/format.js";
import { useLoad } from "./load.js";
import { type Column, Section, Table } from "./parts.js";
import { differencesOf, differs, explainedOf, type Line, linesOf } from "./terms.js";

type Kinds = ("counters" | "broadcasts" | "dots" | "feed" | "chats" | "notifications")[];
const KINDS: Kinds = ["counters", "broadcasts", "dots", "feed", "chats", "notifications"];

/**
 * The pauses before further tries, while numbers differ. The user may change between the two
 * requests. The poll also counts with the heads that its node last saw, and `explain` with those of
 * now. The first further try is at once: `explain` has just updated the node that it asked. Behind a
 * load balancer another node may answer the poll, with heads that are up to 1.8 s old.
 */
const PAUSES_MS = [0, 1_000, 1_000];

interface Both {
  summary: UnreadSummary;
  explain: Explain;
}

interface Compared extends Both {
  /** Whether both are of one revision, and the rows said the same at the first try. */
  isSteady: boolean;
}

async function read(headmark: Headmark, user: string): Promise<Compared> {
  const first = await readOnce(headmark, user);
  let last = first;
  for (const pauseMs of PAUSES_MS) {
    if (differencesOf(last.summary, last.explain) === 0) break;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    last = await readOnce(headmark, user);
  }
  const { summary, explain } = last;
  const isSameBefore = explainedOf(first.summary, first.explain) === explainedOf(summary, explain);
  return { ...last, isSteady: isSameBefore && summary.revision === explain.revision };
}

async function readOnce(headmark: Headmark, user: string): Promise<Both> {
  const query = await headmark.POST("/v1/badges/query", { body: { user_ids: [user], include: KINDS } });
  const explain = (await headmark.GET("/v1/users/{user}/badges/explain", { params: { path: { user } } })).data;
  const summary = query.data.items[0];
  if (!summary) throw new Error("The server answered without this user.");
  return { summary, explain };
}

const COLUMNS: Column<Line>[] = [
  {
    name: "Badge",
    cell: ({ kind, name, polled }) => (
      <span class={polled === null ? "name term" : "name"}>
        {kind !== name && <span class="muted">{kind}</span>}{" "}
        <b>
          <bdi>{name}</bdi>
        </b>
      </span>
    ),
  },
  { name: "A poll says", isNumber: true, cell: ({ polled }) => (polled === null ? "" : <b>{count(polled)}</b>) },
  {
    name: "The rows say",
    isNumber: true,
    cell: (line) =>
      differs(line) ? (
        <b class="trouble">
          {count(line.explained)} <span class="sr">differs from the poll</span>
          <span aria-hidden="true">≠</span>
        </b>
      ) : (
        count(line.explained)
      ),
  },
  { name: "Head", isNumber: true, cell: ({ head }) => (head === null ? "" : count(head)) },
  { name: "− Mark", isNumber: true, cell: ({ mark }) => (mark === null ? "" : count(mark)) },
  { name: "− Taken back", isNumber: true, cell: ({ takenBack }) => (takenBack === null ? "" : count(takenBack)) },
  { name: "Note", isWide: true, cell: ({ note }) => <span class="muted">{note}</span> },
];

export function SummarySection({ headmark, user }: { headmark: Headmark; user: string }) {
  const load = useCallback(() => read(headmark, user), [headmark, user]);
  const { value, trouble, isLoading } = useLoad(load);
  return (
    <Section title="Unread summary, explained" trouble={trouble} isLoading={isLoading}>
      {value ? <Explained {...value} /> : isLoading && <p class="muted">Loading…</p>}
    </Section>
  );
}

function Explained({ summary, explain, isSteady }: Compared) {
  const lines = linesOf(summary, explain);
  const wrong = differencesOf(summary, explain);
  return (
    <>
      <dl class="facts">
        <Fact name="Total on the icon" value={count(summary.total ?? explain.total)} isLarge />
        <Fact name="Revision" value={count(explain.revision)} />
        <Fact name="Shared revision" value={count(summary.shared_revision ?? 0)} />
        <Fact
          name="Came when broadcasts were at"
          value={explain.enrolment_head === undefined ? "never" : count(explain.enrolment_head)}
        />
        <Fact name="Epoch" value={summary.epoch} />
      </dl>
      <Verdict wrong={wrong} isSteady={isSteady} />
      <Table
        caption="Every number of the unread summary with its terms"
        columns={COLUMNS}
        items={lines}
        keyOf={({ id }) => id}
        empty="There is nothing about this user."
      />
    </>
  );
}

function Verdict({ wrong, isSteady }: { wrong: number; isSteady: boolean }) {
  if (wrong === 0) return <p class="good">✓ The poll and the rows agree.</p>;
  if (!isSteady) return <p class="muted">The user’s numbers change all the time just now. Look again.</p>;
  return (
    <p class="trouble" role="alert">
      {wrong === 1 ? "One number differs" : `${wrong} numbers differ`} from the rows. Look again: if it stays, it is drift.
    </p>
  );
}

function Fact({ name, value, isLarge = false }: { name: string; value: string; isLarge?: boolean }) {
  return (
    <div class={isLarge ? "fact large" : "fact"}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
