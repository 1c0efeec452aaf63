// The typed client: every route of the OpenAPI document that answers JSON. Errors are thrown, so `data`
// is what the route answers on success.

import createClient, { type FetchResponse, type MaybeOptionalInit } from "openapi-fetch";
import type { paths } from "./generated/openapi.js";
import { isLoopback, type Signals } from "./surroundings.js";
import { type CallOptions, createTransport, type TransportOptions } from "./transport.js";

export interface HeadmarkOptions extends TransportOptions {
  /** Where the server is, without `/v1`: `https://badges.example`. */
  baseUrl: string;
}

type HttpMethod = "get" | "put" | "post" | "patch" | "delete";
type Operations = Record<string | number, unknown>;

/** They answer lines and text. An answer is read as JSON, as a whole and within the time limit. */
type NotJson = "/metrics" | "/v1/users/{user}/export";
type JsonPath = Exclude<keyof paths, NotJson>;

/** The paths that have an operation of this method. */
type PathsWith<M extends HttpMethod> = {
  [Path in JsonPath]: paths[Path] extends Record<M, object> ? Path : never;
}[JsonPath];

/** By `data`: whether the other member fits `{ error?: never }` depends on the flags of the app's compiler. */
type Success<Operation> = Operation extends Operations
  ? Extract<FetchResponse<Operation, object, `${string}/${string}`>, { data: unknown }>["data"]
  : never;

/** With a tag there may be no data: the answer is 304. */
type Data<Operation, Tag> = Tag extends string ? Success<Operation> | undefined : Success<Operation>;

type Options<Init, Tag> = Init & CallOptions & { tag?: Tag };

/** Optional where the route needs no parameter and no body. */
type Arguments<Init, Tag> = undefined extends Init ? [options?: Options<NonNullable<Init>, Tag>] : [options: Options<Init, Tag>];

/**
 * The parameters are those of openapi-fetch, but errors are thrown. `tag` is the `ETag` of an earlier
 * answer: where nothing has changed since, the status is 304 and there is no data.
 */
export type Method<M extends HttpMethod> = <Path extends PathsWith<M>, Tag extends string | null | undefined = undefined>(
  path: Path,
  ...options: Arguments<MaybeOptionalInit<paths[Path], M>, Tag>
) => Promise<{ data: Data<paths[Path][M], Tag>; response: Response }>;

export interface Headmark {
  GET: Method<"get">;
  PUT: Method<"put">;
  POST: Method<"post">;
  PATCH: Method<"patch">;
  DELETE: Method<"delete">;
}

type AnyMethod = (path: string, init?: object) => Promise<{ data?: unknown; response: Response }>;
type AnyOptions = { tag?: string | null; params?: { path?: object; header?: object } };

/** Clients of a server on this machine. */
const LOCAL = new WeakSet<Headmark>();

/** The signals that matter for requests to this server. */
export function signalsFor(headmark: Headmark, signals: Signals): Signals {
  if (!LOCAL.has(headmark)) return signals;
  return (listener) => signals((signal) => signal !== "offline" && listener(signal));
}

/**
 * A client of the server at `baseUrl`.
 *
 * It throws `ProblemError` when the server refuses, and `NoAnswerError` when no usable answer comes.
 */
export function createHeadmark(options: HeadmarkOptions): Headmark {
  const client = createClient<paths>({ baseUrl: options.baseUrl, fetch: createTransport(options) });
  const throwing = (method: unknown): AnyMethod => {
    return async (path, options: AnyOptions = {}) => {
      const { tag, ...init } = options;
      refuseSteps(init.params?.path);
      if (typeof tag === "string") init.params = { ...init.params, header: { ...init.params?.header, "If-None-Match": tag } };
      const { data, response } = await (method as AnyMethod)(path, init);
      return { data, response };
    };
  };
  const headmark: Headmark = {
    GET: throwing(client.GET) as Method<"get">,
    PUT: throwing(client.PUT) as Method<"put">,
    POST: throwing(client.POST) as Method<"post">,
    PATCH: throwing(client.PATCH) as Method<"patch">,
    DELETE: throwing(client.DELETE) as Method<"delete">,
  };
  if (isLoopback(options.baseUrl)) LOCAL.add(headmark);
  return headmark;
}

/** In a URL these are steps, and no names: the request would go to another route. */
function refuseSteps(path: object = {}): void {
  for (const [name, value] of Object.entries(path)) {
    const text = String(value ?? "");
    if (["", ".", ".."].includes(text)) throw new RangeError(`the path value ${name} must not be ${JSON.stringify(text)}`);
  }
}
