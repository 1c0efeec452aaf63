// A small live chart: lines over the last minutes.

import { useState } from "preact/hooks";
import { decimal, duration, percent } from "../ui/format.js";
import type { Chart, Unit } from "./charts.js";
import { MINUTE_MS, type Point } from "./watch.js";

const WIDTH = 300;
const HEIGHT = 80;

export function ChartView({ chart, points }: { chart: Chart; points: Point[] }) {
  // How far left of the newest point the pointer is, as a share of the width; null: it is elsewhere.
  const [pointed, setPointed] = useState<number | null>(null);
  const lines = chart.series.map((_, at) => points.map((point) => point.values[chart.id]?.[at] ?? null));
  const top = ceiling(lines.flat(), chart.unit);
  const newest = points.at(-1)?.at ?? 0;
  const oldest = points[0]?.at ?? newest;
  const minutes = Math.max(1, Math.ceil((newest - oldest) / MINUTE_MS));
  const shownMs = minutes * MINUTE_MS;
  const xs = points.map(({ at }) => (1 - (newest - at) / shownMs) * WIDTH);
  // The pointed point, or else the newest one.
  const at = nearest(points, newest - (pointed ?? 0) * shownMs);
  const ageS = Math.round((newest - (points[at]?.at ?? newest)) / 1_000);
  const point = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    setPointed((box.right - event.clientX) / box.width);
  };
  return (
    <section class="card chart" aria-label={chart.title} data-chart={chart.id}>
      <h2>{chart.title}</h2>
      <dl class="now">
        {chart.series.map(({ name }, series) => (
          <div key={name} class={`series s${series}`}>
            <dt>{name}</dt>
            <dd>{shown(lines[series]?.[at] ?? null, chart.unit)}</dd>
          </div>
        ))}
      </dl>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${chart.title}, the last ${minutes} min, from 0 to ${shown(top, chart.unit)}`}
        onPointerMove={point}
        onPointerLeave={() => setPointed(null)}
      >
        <path class="grid" d={`M0 .5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}`} />
        {pointed !== null && at >= 0 && <path class="pointed" d={`M${xs[at]} 0V${HEIGHT}`} />}
        {lines.map((line, series) => (
          <path key={chart.series[series]?.name} class={`line s${series}`} d={pathOf(line, xs, top)} />
        ))}
      </svg>
      <p class="axis muted">
        <span>{minutes} min</span>
        <span>{pointed !== null && ageS > 0 ? `${ageS} s ago` : `top: ${shown(top, chart.unit)}`}</span>
      </p>
      <p class="muted about">{chart.note}</p>
    </section>
  );
}

/** The index of the point that was measured closest to this time. */
function nearest(points: Point[], time: number): number {
  const distances = points.map(({ at }) => Math.abs(at - time));
  return distances.indexOf(Math.min(...distances));
}

/** A gap where nothing was measured; a single point is a dot. */
function pathOf(line: (number | null)[], xs: number[], top: number): string {
  const y = (value: number) => HEIGHT - 1 - (value / top) * (HEIGHT - 2);
  let path = "";
  for (const [index, value] of line.entries()) {
    if (value === null) continue;
    const isBegin = index === 0 || line[index - 1] === null;
    path += `${isBegin ? "M" : "L"}${(xs[index] ?? 0).toFixed(1)} ${y(value).toFixed(1)}${isBegin ? "h.01" : ""}`;
  }
  return path;
}

/** The next round number above all values: 1, 2 or 5 times a power of ten. */
export function ceiling(values: (number | null)[], unit: Unit): number {
  if (unit === "share") return 1;
  const highest = Math.max(0, ...values.filter((value) => value !== null));
  if (highest === 0) return unit === "seconds" ? 0.001 : 1;
  const power = 10 ** Math.floor(Math.log10(highest));
  return ([1, 2, 5, 10].find((step) => step * power >= highest) ?? 10) * power;
}

function shown(value: number | null, unit: Unit): string {
  if (value === null) return "–";
  if (unit === "seconds") return duration(value);
  if (unit === "share") return percent(value);
  return unit === "a second" ? `${decimal(value)}/s` : decimal(value);
}
