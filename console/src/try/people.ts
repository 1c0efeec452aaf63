// The three users. They are fixed, so that another window shows the same ones.

export interface Person {
  id: string;
  name: string;
  /** Her likes, his likes. */
  own: "her" | "his";
}

const NAMES = [
  { name: "Ann", own: "her" },
  { name: "Bob", own: "his" },
  { name: "Cleo", own: "her" },
] as const;

/** Far from the ids that a product counts up from 1. */
const USUAL = ["900001", "900002", "900003"];

const MAX_ID = 2n ** 63n - 1n;

export const isUserId = (id: string) => /^[1-9]\d{0,18}$/.test(id) && BigInt(id) <= MAX_ID;

/** From "7,8,9"; null where these are not three different users. */
export function parseUsers(text: string): string[] | null {
  const ids = text.split(/[\s,]+/).filter(Boolean);
  return ids.every(isUserId) && ids.length === NAMES.length && new Set(ids).size === ids.length ? ids : null;
}

export function peopleOf(users: string | null): Person[] {
  const ids = parseUsers(users ?? "") ?? USUAL;
  return NAMES.map((name, at) => ({ ...name, id: ids[at] ?? "" }));
}
