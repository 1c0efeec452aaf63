// Which part of the console is shown. It is in the hash, so that a link leads a colleague to the same
// user, and the server has one page to serve.

import { Store } from "./store.js";

const PARTS = ["try", "lookup", "health"] as const;

export type Part = (typeof PARTS)[number];

export interface Route {
  /** Null: there is no such page. */
  part: Part | null;
  /** Of Look up: the user. Of Try it: the three users, where they are not the usual ones. */
  argument: string | null;
}

export function parseRoute(hash: string): Route {
  const [part = "", argument, ...rest] = hash.replace(/^#\/?/, "").split("/");
  const known = PARTS.find((name) => name === (part || "try")) ?? null;
  const isTooLong = rest.length > 0 || (known === "health" && Boolean(argument));
  return { part: isTooLong ? null : known, argument: argument ? decode(argument) : null };
}

export function hrefOf(part: Part, argument?: string): string {
  return argument === undefined ? `#/${part}` : `#/${part}/${encodeURIComponent(argument)}`;
}

export function createRoute(): Store<Route> {
  const route = new Store(parseRoute(location.hash));
  window.addEventListener("hashchange", () => route.set(parseRoute(location.hash)));
  return route;
}

/** A hand-typed hash may be broken; it is then taken as it stands. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
