// What happened between two readings.

import type { Reading } from "./metrics.js";

type Wanted = (labels: Record<string, string>) => boolean;

export class Span {
  constructor(
    readonly from: Reading,
    readonly to: Reading,
  ) {}

  get seconds(): number {
    return (this.to.at - this.from.at) / 1_000;
  }

  /** A counter that fell is one of another process. */
  get isOneNode(): boolean {
    const name = "headmark_http_requests_total";
    const before = new Map(this.from.samples(name).map((sample) => [keyOf(sample.labels), sample.value]));
    const now = new Map(this.to.samples(name).map((sample) => [keyOf(sample.labels), sample.value]));
    return [...before].every(([key, value]) => (now.get(key) ?? 0) >= value);
  }

  growth(name: string, isWanted?: Wanted): number {
    return Math.max(0, this.to.sum(name, isWanted) - this.from.sum(name, isWanted));
  }

  rate(name: string, isWanted?: Wanted): number | null {
    return this.seconds > 0 ? this.growth(name, isWanted) / this.seconds : null;
  }

  /** `part` of `whole`; null where nothing happened. */
  share(part: number, whole: number): number | null {
    return whole > 0 ? part / whole : null;
  }

  /**
   * The quantile of a histogram, as Prometheus computes it: within a bucket the values are taken as
   * spread evenly. Null where nothing was counted.
   */
  quantile(name: string, quantile: number, isWanted: Wanted = () => true): number | null {
    const bounds = new Map<number, number>();
    for (const [reading, sign] of [
      [this.to, 1],
      [this.from, -1],
    ] as const) {
      for (const { labels, value } of reading.samples(`${name}_bucket`)) {
        if (!isWanted(labels)) continue;
        const bound = labels.le === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels.le);
        bounds.set(bound, (bounds.get(bound) ?? 0) + sign * value);
      }
    }
    return quantileOf(
      [...bounds].sort(([a], [b]) => a - b),
      quantile,
    );
  }
}

/** Of upper bounds with how many values are at or below each. */
export function quantileOf(buckets: [bound: number, count: number][], quantile: number): number | null {
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  const rank = quantile * total;
  let [lower, below] = [0, 0];
  for (const [bound, count] of buckets) {
    if (count >= rank) {
      // Nobody knows how far above the last bound a value is.
      if (bound === Number.POSITIVE_INFINITY) return lower;
      return count === below ? bound : lower + ((bound - lower) * (rank - below)) / (count - below);
    }
    [lower, below] = [bound, count];
  }
  return lower;
}

function keyOf(labels: Record<string, string>): string {
  return `${labels.method} ${labels.route} ${labels.status}`;
}
