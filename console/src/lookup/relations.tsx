// Whom the user follows, who follows the user, and how the user stands to somebody.

import type { Headmark } from "@headmark/client";
import { useCallback, useRef, useState } from "preact/hooks";
import { sentenceOf } from "../problem.js";
import type { ListedUser, Relation, RelationCounts } from "../terms.js";
import { count, Time } from "../ui/format.js";
import { useLoad, usePages } from "./load.js";
import { type Column, PagedTable, Section, UserLink, YesNo } from "./parts.js";

type Props = { headmark: Headmark; user: string };

const LISTS = [
  { list: "followers", name: "Followers", of: "followers" },
  { list: "following", name: "Following", of: "following" },
  { list: "mutuals", name: "Mutual", of: "mutuals" },
  { list: "special", name: "Special", of: "special" },
  { list: "blocks", name: "Blocked", of: "blocked" },
] as const;

type List = (typeof LISTS)[number]["list"];

const PAGE = 20;

const COLUMNS: Column<ListedUser>[] = [
  { name: "User", cell: ({ user_id }) => <UserLink id={user_id} /> },
  { name: "Since", cell: ({ since }) => <Time at={since} /> },
  { name: "Mutual", cell: ({ mutual }) => <YesNo is={mutual} /> },
  { name: "Secret", cell: ({ secret }) => <YesNo is={secret} /> },
  { name: "Special", cell: ({ special }) => <YesNo is={special} /> },
];

export function RelationsSection({ headmark, user }: Props) {
  const [list, setList] = useState<List>("followers");
  const load = useCallback(
    async () => (await headmark.GET("/v1/users/{user}/relation-counts", { params: { path: { user } } })).data,
    [headmark, user],
  );
  const { value, trouble, isLoading } = useLoad(load);
  return (
    <Section title="Relations" trouble={trouble} isLoading={isLoading}>
      <fieldset class="choices">
        <legend class="sr">Which list</legend>
        {LISTS.map((entry) => (
          <label key={entry.list} class={entry.list === list ? "choice chosen" : "choice"}>
            <input type="radio" name="list" class="sr" checked={entry.list === list} onChange={() => setList(entry.list)} />
            {entry.name} <b>{countOf(value, entry.of)}</b>
          </label>
        ))}
      </fieldset>
      <ListedUsers headmark={headmark} user={user} list={list} />
      <PairForm headmark={headmark} user={user} />
    </Section>
  );
}

function countOf(counts: RelationCounts | null, of: keyof RelationCounts): string {
  const value = counts?.[of];
  return value === undefined ? "" : count(value);
}

function ListedUsers({ headmark, user, list }: Props & { list: List }) {
  const read = useCallback(
    async (cursor: string | null) => {
      const params = { path: { user }, query: { limit: PAGE, ...(cursor === null ? {} : { cursor }) } };
      return (await headmark.GET(`/v1/users/{user}/${list}`, { params })).data;
    },
    [headmark, user, list],
  );
  const pages = usePages(read);
  return (
    <PagedTable pages={pages} caption={`List: ${list}`} columns={COLUMNS} keyOf={({ user_id }) => user_id} empty="Nobody." />
  );
}

function PairForm({ headmark, user }: Props) {
  const [answer, setAnswer] = useState<{ towards: Relation; back: Relation } | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const asked = useRef(0);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const other = String(new FormData(event.currentTarget as HTMLFormElement).get("other")).trim();
    if (other === "") return;
    asked.current += 1;
    const own = asked.current;
    try {
      const [towards, back] = await Promise.all([relation(headmark, user, other), relation(headmark, other, user)]);
      if (own !== asked.current) return;
      setAnswer({ towards, back });
      setTrouble(null);
    } catch (error) {
      if (own !== asked.current) return;
      setAnswer(null);
      setTrouble(sentenceOf(error));
    }
  };
  return (
    <>
      <form class="row" onSubmit={(event) => void submit(event)}>
        <label for="other">And user</label>
        <input id="other" name="other" inputMode="numeric" autocomplete="off" maxLength={19} />
        <button type="submit">Compare the two</button>
      </form>
      <p class={trouble === null ? "said" : "said trouble"} role="status">
        {trouble}
        {answer && `${describe(user, answer.towards)} ${describe(answer.towards.user_id, answer.back)}`}
      </p>
    </>
  );
}

async function relation(headmark: Headmark, user: string, other: string): Promise<Relation> {
  const { data } = await headmark.GET("/v1/users/{user}/relations", { params: { path: { user }, query: { ids: other } } });
  const found: Relation | undefined = data.items[0];
  if (!found) throw new Error(`The server answered without user ${other}.`);
  return found;
}

function describe(user: string, { user_id, following, secret, special, blocking }: Relation): string {
  const how = [secret ? "in secret" : "", special ? "as special" : ""].filter(Boolean).join(", ");
  const follows = following ? `follows ${user_id}${how === "" ? "" : ` (${how})`}` : `does not follow ${user_id}`;
  return `${user} ${follows}${blocking ? " and blocks them" : ""}.`;
}
