// Why a number is what it is: the unread summary with its explanation.

import type { Headmark, UnreadSummary } from "@headmark/client";
import { useCallback } from "preact/hooks";
import type { Explain } from "../terms.js";
import { count } from "../ui/format.js";
import { useLoad } from "./load.js";
import { type Column, Section, Table } from "./parts.js";
import { differs, type Line, linesOf } from "./terms.js";

type Kinds = ("counters" | "broadcasts" | "dots" | "feed" | "chats" | "notifications")[];
const KINDS: Kinds = ["counters", "broadcasts", "dots", "feed", "chats", "notifications"];

/** A change between the two requests would look like a difference. */
const MAX_TRIES = 3;

interface Both {
  summary: UnreadSummary;
  explain: Explain;
}

async function read(headmark: Headmark, user: string, triesLeft = MAX_TRIES - 1): Promise<Both> {
  const query = await headmark.POST("/v1/badges/query", { body: { user_ids: [user], include: KINDS } });
  const explain = (await headmark.GET("/v1/users/{user}/badges/explain", { params: { path: { user } } })).data;
  const summary = query.data.items[0];
  if (!summary) throw new Error("The server answered without this user.");
  if (summary.revision === explain.revision || triesLeft === 0) return { summary, explain };
  return await read(headmark, user, triesLeft - 1);
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

function Explained({ summary, explain }: Both) {
  const lines = linesOf(summary, explain);
  const isSameState = summary.revision === explain.revision;
  const wrong = lines.filter(differs).length + (summary.total === explain.total ? 0 : 1);
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
      <Verdict wrong={wrong} isSameState={isSameState} />
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

function Verdict({ wrong, isSameState }: { wrong: number; isSameState: boolean }) {
  if (wrong === 0) return <p class="good">✓ The poll and the rows agree.</p>;
  if (!isSameState) return <p class="muted">The user’s numbers change all the time just now. Look again.</p>;
  return (
    <p class="trouble" role="alert">
      {wrong === 1 ? "One number differs" : `${wrong} numbers differ`} from the rows. Look again: shared heads may have moved in
      between. If it stays, it is drift.
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
