// Which part of the console is shown. It is in the hash, so that a link leads a colleague to the same
// user, and the server has one page to serve.

import { Store } from "./store.js";

export type Part = "try" | "lookup" | "health";

export interface Route {
  part: Part;
  /** Of Look up: the user. Of Try it: the three users, where they are not the usual ones. */
  argument: string | null;
}

export function parseRoute(hash: string): Route {
  const [part = "", argument] = hash.replace(/^#\/?/, "").split("/");
  const known: Part = part === "lookup" || part === "health" ? part : "try";
  return { part: known, argument: argument ? decode(argument) : null };
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
