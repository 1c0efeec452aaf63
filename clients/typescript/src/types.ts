// Short names for the bodies that an app touches. All others are in `components["schemas"]`.

import type { components } from "./generated/openapi.js";

type Schemas = components["schemas"];

export type UnreadSummary = Schemas["UnreadSummaryOut"];
export type Counter = Schemas["CounterOut"];
export type Dot = Schemas["DotOut"];
export type InboxPage = Schemas["InboxOut"];
export type InboxItem = Schemas["ItemOut"];
export type Problem = Schemas["ProblemOut"];
export type ProblemCode = Schemas["Code"];
