// The charts: what each shows of a span between two readings.

import type { Reading } from "./metrics.js";
import type { Span } from "./rates.js";

export interface Series {
  name: string;
  /** Null: nothing was there to measure. */
  value(span: Span): number | null;
}

export type Unit = "a second" | "seconds" | "share" | "number";

export interface Chart {
  id: string;
  title: string;
  note: string;
  unit: Unit;
  series: Series[];
}

type Labels = Record<string, string>;

const REQUESTS = "headmark_http_requests_total";
const SECONDS = "headmark_http_request_seconds";

/** What watches the server itself, this page among it. */
const PROBES = ["/metrics", "/readyz", "/livez", "/healthz"];
const POLL = "/v1/users/{user}/badges";
/** They read, and take POST because their bodies are long. */
const QUERIES = ["/v1/badges/query", "/v1/relations/query"];

const isProbe = ({ route = "" }: Labels) => PROBES.includes(route);
const isPoll = ({ route, method }: Labels) => route === POLL && method === "GET";
const isApi = ({ route = "" }: Labels) => route.startsWith("/v1/");
const isQuery = ({ route = "", method }: Labels) => QUERIES.includes(route) && method === "POST";
const isRead = (labels: Labels) => (labels.method === "GET" && !isPoll(labels) && isApi(labels)) || isQuery(labels);
const isWrite = (labels: Labels) => ["POST", "PUT", "PATCH", "DELETE"].includes(labels.method ?? "") && !isQuery(labels);

export const CHARTS: Chart[] = [
  {
    id: "requests",
    title: "Requests",
    note: "Requests a second, without probes.",
    unit: "a second",
    series: [
      { name: "polls", value: (span) => span.rate(REQUESTS, isPoll) },
      { name: "other reads", value: (span) => span.rate(REQUESTS, isRead) },
      { name: "writes", value: (span) => span.rate(REQUESTS, isWrite) },
    ],
  },
  {
    id: "latency",
    title: "Latency of requests",
    note: "Of requests that were not held.",
    unit: "seconds",
    series: [
      { name: "median", value: (span) => span.quantile(SECONDS, 0.5, isApi) },
      { name: "99th percentile", value: (span) => span.quantile(SECONDS, 0.99, isApi) },
    ],
  },
  {
    id: "errors",
    title: "Errors",
    note: "Answers a second. 4xx are callers’ mistakes, 5xx the server’s trouble.",
    unit: "a second",
    series: [
      { name: "4xx", value: (span) => span.rate(REQUESTS, ({ status = "" }) => status.startsWith("4") && status !== "499") },
      {
        name: "5xx",
        value: (span) => span.rate(REQUESTS, (labels) => (labels.status ?? "").startsWith("5") && !isProbe(labels)),
      },
    ],
  },
  {
    id: "held",
    title: "Held polls",
    note: "Polls that wait for news, and open connections.",
    unit: "number",
    series: [
      { name: "held polls", value: ({ to }) => to.sum("headmark_polls_waiting") },
      { name: "connections", value: ({ to }) => to.sum("headmark_http_connections") },
    ],
  },
  {
    id: "commits",
    title: "Commits",
    note: "Time of a committed batch: what a write waits for.",
    unit: "seconds",
    series: [
      { name: "median", value: (span) => span.quantile("headmark_lane_batch_seconds", 0.5) },
      { name: "99th percentile", value: (span) => span.quantile("headmark_lane_batch_seconds", 0.99) },
    ],
  },
  {
    id: "batch",
    title: "Batch size",
    note: "Changes in a transaction: how many callers share a commit.",
    unit: "number",
    series: [
      {
        name: "changes",
        value: (span) =>
          span.share(span.growth("headmark_lane_commands_total"), span.growth("headmark_lane_batch_seconds_count")),
      },
    ],
  },
  {
    id: "hits",
    title: "Cache hit rate",
    note: "Reads of users’ entries that the cache answered.",
    unit: "share",
    series: [
      {
        name: "hits",
        value: (span) =>
          span.share(
            span.growth("headmark_cache_reads_total", ({ result }) => result === "hit"),
            span.growth("headmark_cache_reads_total"),
          ),
      },
    ],
  },
  {
    id: "sql",
    title: "Database",
    note: "Statements a second, and polls a second that needed one.",
    unit: "a second",
    series: [
      { name: "statements", value: (span) => span.rate("headmark_database_statements_total") },
      { name: "polls reading SQL", value: (span) => span.rate("headmark_summary_sql_reads_total") },
    ],
  },
];

/** Differences that the scrubber found since the node started; must be 0. */
export const driftOf = (reading: Reading) => reading.sum("headmark_drift_total");
export const scrubbedOf = (reading: Reading) => reading.sum("headmark_scrubbed_users_total");

export interface RouteRates {
  route: string;
  rate: number;
  errors: number;
  /** Of requests that were not held; null: all were. */
  median: number | null;
  slowest: number | null;
}

/** The busiest routes of a span. */
export function busiestRoutes(span: Span, most: number): RouteRates[] {
  const routes = new Set(span.to.samples(REQUESTS).map(({ labels }) => labels.route ?? ""));
  const rates = [...routes].map((route): RouteRates => {
    const isOfRoute = (labels: Labels) => labels.route === route;
    return {
      route,
      rate: span.rate(REQUESTS, isOfRoute) ?? 0,
      errors:
        span.rate(REQUESTS, (labels) => isOfRoute(labels) && /^[45]/.test(labels.status ?? "") && labels.status !== "499") ?? 0,
      median: span.quantile(SECONDS, 0.5, isOfRoute),
      slowest: span.quantile(SECONDS, 0.99, isOfRoute),
    };
  });
  return rates
    .filter(({ route, rate }) => rate > 0 && !PROBES.includes(route))
    .sort((a, b) => b.rate - a.rate)
    .slice(0, most);
}
