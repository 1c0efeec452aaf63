// What apps import from `@headmark/client`.

export type { Trouble } from "./answer.js";
export { createHeadmark, type Headmark, type HeadmarkOptions } from "./client.js";
export { NoAnswerError, ProblemError } from "./errors.js";
export type { components, paths } from "./generated/openapi.js";
export { InboxReader, type InboxReaderOptions } from "./inbox/reader.js";
export type { InboxPosition, InboxStatus } from "./inbox/types.js";
export { UnreadPoller, type UnreadPollerOptions } from "./poller/poller.js";
export type { PollerStatus, ResetKind, UnreadView } from "./poller/types.js";
export { type Clock, onlineSignals, pageSignals, type Signal, type Signals } from "./surroundings.js";
export type { Token } from "./tokens.js";
export type { CallOptions, TransportOptions } from "./transport.js";
export type { Counter, Dot, InboxItem, InboxPage, Problem, ProblemCode, UnreadSummary } from "./types.js";
