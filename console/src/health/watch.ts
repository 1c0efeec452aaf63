// Reads /readyz and /metrics every two seconds, and keeps five minutes of points.

import type { Session } from "../session.js";
import { Store } from "../store.js";
import type { Ready } from "../terms.js";
import { CHARTS } from "./charts.js";
import { Reading } from "./metrics.js";
import { Span } from "./rates.js";

const EVERY_MS = 2_000;
const TIMEOUT_MS = 3_000;
export const MINUTE_MS = 60_000;
/** For how long a point is kept. */
const MAX_AGE_MS = 5 * MINUTE_MS;
/**
 * Readings further apart are not compared: their average over the pause would look like a moment.
 * Slow readings, and those before and after a failed one, are closer together.
 */
const MAX_APART_MS = 2 * (EVERY_MS + TIMEOUT_MS);
/** Nothing came within the time limit, or no connection. */
export const NO_ANSWER = "The server does not answer.";

export interface Point {
  /** When it was measured, in the milliseconds of `performance.now()`. */
  at: number;
  /** By chart, in the order of its series; null: no answer, nothing to measure, or a pause before it. */
  values: Record<string, (number | null)[]>;
}

export interface Health {
  isAsked: boolean;
  ready: Ready | null;
  readyTrouble: string | null;
  metricsTrouble: string | null;
  points: Point[];
  last: Reading | null;
  /** The last minute, or as much of it as was seen. */
  minute: Span | null;
  /** How often the counters fell: another node answered, or this one was started again. */
  otherNodes: number;
}

const NOTHING: Health = {
  isAsked: false,
  ready: null,
  readyTrouble: null,
  metricsTrouble: null,
  points: [],
  last: null,
  minute: null,
  otherNodes: 0,
};

export class HealthWatch {
  readonly health = new Store<Health>(NOTHING);
  readonly #session: Session;
  #readings: Reading[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stopped = new AbortController();

  constructor(session: Session) {
    this.#session = session;
  }

  start(): void {
    this.#stopped = new AbortController();
    void this.#run(this.#stopped.signal);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#stopped.abort();
  }

  async #run(stopped: AbortSignal): Promise<void> {
    // Nobody looks at a hidden page. The charts show a gap after a longer pause.
    if (document.visibilityState === "visible") await this.#look(stopped);
    if (stopped.aborted) return;
    this.#timer = setTimeout(() => void this.#run(stopped), EVERY_MS);
  }

  async #look(stopped: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([stopped, AbortSignal.timeout(TIMEOUT_MS)]);
    const [ready, metrics] = await Promise.all([this.#ready(signal), this.#metrics(signal)]);
    if (stopped.aborted) return;
    const before = this.health.value;
    const { reading } = metrics;
    const isOther = reading !== null && this.#isOtherNode(reading);
    const isAfterPause = reading !== null && this.#isAfterPause(reading);
    if (isOther || isAfterPause) this.#readings = [];
    const previous = this.#readings.at(-1);
    if (reading) this.#readings = [...this.#readings, reading].filter(({ at }) => reading.at - at <= MINUTE_MS);
    const first = this.#readings[0];
    const point = pointOf(previous, reading);
    this.health.set({
      isAsked: true,
      ready: ready.body,
      readyTrouble: ready.trouble,
      metricsTrouble: metrics.trouble,
      points: [...before.points, point].filter(({ at }) => point.at - at <= MAX_AGE_MS),
      last: reading ?? before.last,
      minute: first && reading && first !== reading ? new Span(first, reading) : before.minute,
      otherNodes: before.otherNodes + (isOther ? 1 : 0),
    });
  }

  #isOtherNode(reading: Reading): boolean {
    const previous = this.#readings.at(-1);
    return previous !== undefined && !new Span(previous, reading).isOneNode;
  }

  #isAfterPause(reading: Reading): boolean {
    const previous = this.#readings.at(-1);
    return previous !== undefined && reading.at - previous.at > MAX_APART_MS;
  }

  async #ready(signal: AbortSignal): Promise<{ body: Ready | null; trouble: string | null }> {
    try {
      const response = await this.#session.probe("/readyz", signal);
      // 503 has a body, too: it says which part is away.
      if (response.status === 200 || response.status === 503) return { body: await response.json(), trouble: null };
      return { body: null, trouble: refusal("/readyz", response.status) };
    } catch {
      return { body: null, trouble: NO_ANSWER };
    }
  }

  async #metrics(signal: AbortSignal): Promise<{ reading: Reading | null; trouble: string | null }> {
    try {
      const response = await this.#session.probe("/metrics", signal);
      if (!response.ok) return { reading: null, trouble: refusal("/metrics", response.status) };
      const reading = new Reading(await response.text(), performance.now());
      return reading.isEmpty ? { reading: null, trouble: "/metrics is empty." } : { reading, trouble: null };
    } catch {
      return { reading: null, trouble: NO_ANSWER };
    }
  }
}

function refusal(path: string, status: number): string {
  if (status === 401 || status === 403)
    return `${path} is refused (${status}): it needs a service key, or is not open to browsers.`;
  if (status === 404)
    return `${path} is not served here (404). It may be kept from the public, at the load balancer for example.`;
  return `${path} answered ${status}.`;
}

function pointOf(from: Reading | undefined, to: Reading | null): Point {
  const span = from && to ? new Span(from, to) : null;
  const values = CHARTS.map(({ id, series }) => [id, series.map(({ value }) => (span ? value(span) : null))] as const);
  return { at: to?.at ?? performance.now(), values: Object.fromEntries(values) };
}
