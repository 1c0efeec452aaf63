// The times of Health: pauses, slow answers, and where points stand in the charts.
// @vitest-environment happy-dom

import { render } from "preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ChartView } from "../../src/health/chart-view.js";
import { CHARTS, type Chart } from "../../src/health/charts.js";
import { HealthWatch } from "../../src/health/watch.js";
import type { Session } from "../../src/session.js";

const [REQUESTS] = CHARTS as [Chart, ...Chart[]];
const POLLS_A_SECOND = 5;

/** How long the server takes for an answer; null: it gives none. */
let takesMs: number | null;
/** Polls while nobody looked. */
let more: number;
let watch: HealthWatch;

beforeEach(() => {
  vi.useFakeTimers();
  [takesMs, more] = [10, 0];
  watch = new HealthWatch({ probe } as unknown as Session);
  watch.start();
});

afterEach(() => {
  watch.stop();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function probe(path: string): Promise<Response> {
  if (takesMs === null) throw new Error("no answer");
  await new Promise((resolve) => setTimeout(resolve, takesMs ?? 0));
  const polls = (performance.now() / 1_000) * POLLS_A_SECOND + more;
  const text = `headmark_http_requests_total{method="GET",route="/v1/users/{user}/badges",status="200"} ${polls}`;
  const ready = { ready: true, degraded: false, database: "ok", cache: "ok", node: "ok" };
  return new Response(path === "/metrics" ? text : JSON.stringify(ready));
}

const seconds = (count: number) => vi.advanceTimersByTimeAsync(count * 1_000);

async function hide(forS: number): Promise<void> {
  const visibility = vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
  await seconds(forS);
  visibility.mockRestore();
}

/** The rate of polls at each point. */
const rates = () => watch.health.value.points.map(({ values }) => values[REQUESTS.id]?.[0]);
const steady = (length: number) => Array.from({ length }, () => expect.closeTo(POLLS_A_SECOND));

it("after a minute in a hidden tab there is a gap, not an average of that minute", async () => {
  await seconds(9);
  expect(rates()).toEqual([null, ...steady(4)]);
  more += 6_000;
  await hide(60);
  await seconds(6);
  expect(rates()).toEqual([null, ...steady(4), null, ...steady(2)]);
  const [before, after] = watch.health.value.points.slice(4, 6).map(({ at }) => at);
  expect((after ?? 0) - (before ?? 0)).toBeGreaterThanOrEqual(60_000);
  expect(watch.health.value.minute?.seconds).toBeLessThan(10);
});

it("after ten minutes in a hidden tab the charts begin again", async () => {
  await seconds(9);
  await hide(600);
  await seconds(6);
  expect(rates()).toEqual([null, ...steady(2)]);
});

it("after a minute without an answer there is a gap, too", async () => {
  await seconds(9);
  takesMs = null;
  await seconds(60);
  [takesMs, more] = [10, 6_000];
  await seconds(6);
  expect(rates().slice(-3)).toEqual([null, ...steady(2)]);
});

it("slow answers make no gap, and the last minute is a minute", async () => {
  takesMs = 2_900;
  await seconds(150);
  expect(rates()).toEqual([null, ...steady(rates().length - 1)]);
  expect(rates().length).toBeGreaterThan(29);
  const span = watch.health.value.minute?.seconds ?? 0;
  expect([span > 50, span <= 60]).toEqual([true, true]);
});

it("one answer that fails makes no gap for the next one", async () => {
  await seconds(9);
  takesMs = null;
  await seconds(2);
  takesMs = 10;
  await seconds(4);
  expect(rates()).toEqual([null, ...steady(4), null, ...steady(2)]);
});

it("the points of five minutes are kept", async () => {
  await seconds(400);
  const { points } = watch.health.value;
  const age = (points.at(-1)?.at ?? 0) - (points[0]?.at ?? 0);
  expect([age > 297_000, age <= 300_000]).toEqual([true, true]);
});

it("a point stands where its time is, and says how old it is", async () => {
  const point = (atS: number, value: number | null) => ({ at: atS * 1_000, values: { [REQUESTS.id]: [value, null, null] } });
  const points = [point(0, 1), point(2, 1), point(4, 1), point(124, null), point(126, 1), point(128, 1)];
  const body = document.createElement("div");
  render(<ChartView chart={REQUESTS} points={points} />, body);
  const line = body.querySelector("path.line.s0")?.getAttribute("d");
  expect(line).toBe("M86.7 1.0h.01L90.0 1.0L93.3 1.0M296.7 1.0h.01L300.0 1.0");
  const axis = () => [...body.querySelectorAll(".axis span")].map(({ textContent }) => textContent);
  expect(axis()).toEqual(["3 min", "top: 1/s"]);
  const svg = body.querySelector("svg") as SVGSVGElement;
  vi.spyOn(svg, "getBoundingClientRect").mockReturnValue(new DOMRect(100, 0, 300, 80));
  svg.dispatchEvent(new MouseEvent("pointermove", { clientX: 195 }));
  await seconds(1);
  expect(axis()).toEqual(["3 min", "124 s ago"]);
  render(null, body);
});
