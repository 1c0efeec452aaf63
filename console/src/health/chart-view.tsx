// A small live chart: lines over the last minutes.

import { useState } from "preact/hooks";
import { decimal, duration, percent } from "../ui/format.js";
import type { Chart, Unit } from "./charts.js";
import { EVERY_MS, MAX_POINTS, type Point } from "./watch.js";

const WIDTH = 300;
const HEIGHT = 80;
/** A minute: what is shown grows from it to all that is kept. */
const MIN_POINTS = 30;

export function ChartView({ chart, points }: { chart: Chart; points: Point[] }) {
  // Which point the pointer is at; else the newest one is shown.
  const [pointed, setPointed] = useState<number | null>(null);
  const lines = chart.series.map((_, at) => points.map((point) => point.values[chart.id]?.[at] ?? null));
  const top = ceiling(lines.flat(), chart.unit);
  const slots = Math.min(MAX_POINTS, Math.max(MIN_POINTS, points.length));
  const first = slots - points.length;
  const span = `${decimal((slots * EVERY_MS) / 60_000)} min`;
  const at = pointed !== null && pointed >= first ? pointed - first : points.length - 1;
  const x = (index: number) => ((first + index) / (slots - 1)) * WIDTH;
  const ageS = ((points.length - 1 - at) * EVERY_MS) / 1_000;
  const point = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    setPointed(Math.round(((event.clientX - box.left) / box.width) * (slots - 1)));
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
        aria-label={`${chart.title}, the last ${span}, from 0 to ${shown(top, chart.unit)}`}
        onPointerMove={point}
        onPointerLeave={() => setPointed(null)}
      >
        <path class="grid" d={`M0 .5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}`} />
        {pointed !== null && at >= 0 && <path class="pointed" d={`M${x(at)} 0V${HEIGHT}`} />}
        {lines.map((line, series) => (
          <path key={chart.series[series]?.name} class={`line s${series}`} d={pathOf(line, x, top)} />
        ))}
      </svg>
      <p class="axis muted">
        <span>{span}</span>
        <span>{pointed !== null && ageS > 0 ? `${ageS} s ago` : `top: ${shown(top, chart.unit)}`}</span>
      </p>
      <p class="muted about">{chart.note}</p>
    </section>
  );
}

/** A gap where nothing was measured; a single point is a dot. */
function pathOf(line: (number | null)[], x: (index: number) => number, top: number): string {
  const y = (value: number) => HEIGHT - 1 - (value / top) * (HEIGHT - 2);
  let path = "";
  for (const [index, value] of line.entries()) {
    if (value === null) continue;
    const isBegin = index === 0 || line[index - 1] === null;
    path += `${isBegin ? "M" : "L"}${x(index).toFixed(1)} ${y(value).toFixed(1)}${isBegin ? "h.01" : ""}`;
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
