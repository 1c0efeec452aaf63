// Reads the Prometheus text of /metrics.

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

export function parseMetrics(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    const found = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!found) continue;
    const [, name = "", labels = "", value = ""] = found;
    const number = value === "+Inf" ? Number.POSITIVE_INFINITY : Number(value);
    if (!Number.isNaN(number)) samples.push({ name, labels: parseLabels(labels), value: number });
  }
  return samples;
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name = "", value = ""] of text.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g)) {
    labels[name] = value.replace(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped));
  }
  return labels;
}

/** One reading of all metrics. */
export class Reading {
  readonly at: number;
  readonly #byName = new Map<string, Sample[]>();

  constructor(text: string, at: number) {
    this.at = at;
    for (const sample of parseMetrics(text)) {
      const samples = this.#byName.get(sample.name);
      if (samples) samples.push(sample);
      else this.#byName.set(sample.name, [sample]);
    }
  }

  get isEmpty(): boolean {
    return this.#byName.size === 0;
  }

  samples(name: string): Sample[] {
    return this.#byName.get(name) ?? [];
  }

  /** Of all series of this name that are wanted; a counter without a first event is 0. */
  sum(name: string, isWanted: (labels: Record<string, string>) => boolean = () => true): number {
    return this.samples(name).reduce((sum, { labels, value }) => (isWanted(labels) ? sum + value : sum), 0);
  }
}
