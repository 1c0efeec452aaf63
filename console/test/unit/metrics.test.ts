import { describe, expect, it } from "vitest";
import { ceiling } from "../../src/health/chart-view.js";
import { busiestRoutes, CHARTS } from "../../src/health/charts.js";
import { parseMetrics, Reading } from "../../src/health/metrics.js";
import { quantileOf, Span } from "../../src/health/rates.js";

const reading = (at: number, lines: string[]) => new Reading(lines.join("\n"), at);
const POLL = "/v1/users/{user}/badges";
const requests = (method: string, route: string, status: number, value: number) =>
  `headmark_http_requests_total{method="${method}",route="${route}",status="${status}"} ${value}`;

describe("the Prometheus text", () => {
  it("is read with labels, escapes and comments", () => {
    const text = '# HELP x y\nx{a="1",b="q\\"\\\\\\n}"} 2.5\n\ny 3\nz_bucket{le="+Inf"} 4\nbroken\nnan NaN';
    expect(parseMetrics(text)).toEqual([
      { name: "x", labels: { a: "1", b: 'q"\\\n}' }, value: 2.5 },
      { name: "y", labels: {}, value: 3 },
      { name: "z_bucket", labels: { le: "+Inf" }, value: 4 },
    ]);
  });
});

describe("quantiles", () => {
  it("are those of Prometheus", () => {
    const buckets: [number, number][] = [
      [0.1, 0],
      [0.2, 10],
      [0.4, 20],
      [Number.POSITIVE_INFINITY, 20],
    ];
    expect(quantileOf(buckets, 0.5)).toBeCloseTo(0.2);
    expect(quantileOf(buckets, 0.75)).toBeCloseTo(0.3);
    expect(quantileOf(buckets, 1)).toBeCloseTo(0.4);
  });

  it("have an end: the last bound, and nothing for nothing", () => {
    expect(
      quantileOf(
        [
          [1, 0],
          [Number.POSITIVE_INFINITY, 5],
        ],
        0.99,
      ),
    ).toBe(1);
    expect(
      quantileOf(
        [
          [1, 0],
          [Number.POSITIVE_INFINITY, 0],
        ],
        0.5,
      ),
    ).toBeNull();
    expect(quantileOf([], 0.5)).toBeNull();
  });
});

describe("a span", () => {
  const before = reading(0, [requests("GET", POLL, 200, 10), requests("GET", "/metrics", 200, 5)]);
  const after = reading(2_000, [
    requests("GET", POLL, 200, 14),
    requests("GET", POLL, 304, 6),
    requests("POST", "/v1/badges/query", 422, 2),
    requests("GET", "/metrics", 200, 6),
  ]);
  const span = new Span(before, after);

  it("has rates of each kind, and probes are none", () => {
    const values = CHARTS.find(({ id }) => id === "requests")?.series.map(({ value }) => value(span));
    expect(values).toEqual([5, 1, 0]);
    expect(busiestRoutes(span, 9).map(({ route, rate, errors }) => [route, rate, errors])).toEqual([
      [POLL, 5, 0],
      ["/v1/badges/query", 1, 1],
    ]);
  });

  it("counts every method that writes", () => {
    const methods = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    const writes = reading(
      2_000,
      methods.map((method) => requests(method, "/v1/users/{user}/settings", 200, 2)),
    );
    const values = CHARTS.find(({ id }) => id === "requests")?.series.map(({ value }) => value(new Span(reading(0, []), writes)));
    expect(values).toEqual([0, 0, 4]);
  });

  it("counts the queries among the reads, though they are sent with POST", () => {
    const queries = reading(2_000, [
      requests("POST", "/v1/badges/query", 200, 2),
      requests("POST", "/v1/relations/query", 200, 4),
      requests("POST", "/v1/badges/increment", 200, 8),
      requests("GET", "/v1/users/{user}/chats", 200, 16),
    ]);
    const values = CHARTS.find(({ id }) => id === "requests")?.series.map(({ value }) =>
      value(new Span(reading(0, []), queries)),
    );
    expect(values).toEqual([0, 11, 4]);
  });

  it("has the latency of every route, for the time that polls were held is not in it", () => {
    const took = (route: string, seconds: number, held: number) => [
      requests("GET", route, 200, seconds + held),
      `headmark_http_request_seconds_bucket{route="${route}",le="0.01"} ${seconds}`,
      `headmark_http_request_seconds_bucket{route="${route}",le="+Inf"} ${seconds}`,
      `headmark_http_held_seconds_bucket{route="${route}",le="30"} ${held}`,
      `headmark_http_held_seconds_bucket{route="${route}",le="+Inf"} ${held}`,
    ];
    const inbox = "/v1/users/{user}/inbox";
    const polls = new Span(
      reading(0, []),
      reading(2_000, [...took(POLL, 10, 4), ...took(inbox, 0, 4), ...took("/metrics", 9, 0)]),
    );
    const latency = CHARTS.find(({ id }) => id === "latency")?.series.map(({ value }) => value(polls));
    expect(latency).toEqual([0.005, expect.closeTo(0.0099)]);
    expect(busiestRoutes(polls, 9)).toEqual([
      { route: POLL, rate: 7, errors: 0, median: 0.005, slowest: expect.closeTo(0.0099) },
      { route: inbox, rate: 2, errors: 0, median: null, slowest: null },
    ]);
  });

  it("is of one node until a counter falls", () => {
    expect(span.isOneNode).toBe(true);
    expect(new Span(after, before).isOneNode).toBe(false);
  });

  it("has no share of nothing", () => {
    const values = ["batch", "hits"].map((chart) => CHARTS.find(({ id }) => id === chart)?.series[0]?.value(span));
    expect(values).toEqual([null, null]);
  });
});

describe("the top of a chart", () => {
  it("is the next round number", () => {
    expect(ceiling([0.0003, null], "seconds")).toBeCloseTo(0.0005);
    expect(ceiling([101], "number")).toBe(200);
    expect(ceiling([5], "number")).toBe(5);
    expect(ceiling([null, 0], "a second")).toBe(1);
    expect(ceiling([0.2], "share")).toBe(1);
  });
});
