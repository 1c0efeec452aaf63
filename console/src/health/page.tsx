// Health: the stores, and what the node does.

import { useEffect, useMemo } from "preact/hooks";
import { type Column, Table } from "../lookup/parts.js";
import type { Session } from "../session.js";
import { useStore } from "../store.js";
import type { Ready } from "../terms.js";
import { count, decimal, duration } from "../ui/format.js";
import { ChartView } from "./chart-view.js";
import { busiestRoutes, CHARTS, driftOf, type RouteRates, scrubbedOf } from "./charts.js";
import { type Health, HealthWatch, NO_ANSWER } from "./watch.js";

const MAX_ROUTES = 12;

export function HealthPage({ session }: { session: Session }) {
  const watch = useMemo(() => new HealthWatch(session), [session]);
  const health = useStore(watch.health);
  useEffect(() => {
    watch.start();
    return () => watch.stop();
  }, [watch]);
  return (
    <>
      <div class="head">
        <h1>Health</h1>
        <p class="lead">
          The node that answers this page, read every two seconds. With several nodes, watch each at its own address.
        </p>
      </div>
      <Stores health={health} />
      {health.metricsTrouble !== null && (
        <p class="card trouble" role="alert">
          {health.metricsTrouble} {health.points.length > 1 && "The charts go on when it answers."}
        </p>
      )}
      {health.otherNodes > 0 && (
        <p class="card" role="status">
          The counters fell {health.otherNodes === 1 ? "once" : `${health.otherNodes} times`}: the node was started again, or
          another one answered. The last minute begins there.
        </p>
      )}
      {health.last !== null && <Measured health={health} />}
    </>
  );
}

function Measured({ health }: { health: Health }) {
  return (
    <>
      <div class="charts">
        {CHARTS.map((chart) => (
          <ChartView key={chart.id} chart={chart} points={health.points} />
        ))}
      </div>
      <section class="card" aria-label="Busiest routes">
        <h2>Busiest routes of the last minute</h2>
        <p class="muted">The times are of requests that were not held.</p>
        <Table
          caption="Busiest routes of the last minute"
          columns={ROUTES}
          items={health.minute ? busiestRoutes(health.minute, MAX_ROUTES) : []}
          keyOf={({ route }) => route}
          empty="No request yet, apart from those of this page."
        />
      </section>
    </>
  );
}

interface Said {
  word: string;
  /** Null: nobody knows. */
  isGood: boolean | null;
}

const SAYS: Record<Ready["database"], Said> = {
  ok: { word: "ok", isGood: true },
  away: { word: "does not answer", isGood: false },
  lagging: { word: "behind: its reads go to the database", isGood: false },
  bypassed: { word: "bypassed: polls read the database", isGood: false },
  draining: { word: "is stopping", isGood: false },
  failed: { word: "failed: start it again", isGood: false },
};

const UNKNOWN: Said = { word: "unknown", isGood: null };

function readySays({ ready, readyTrouble }: Health): Said {
  if (ready === null) return readyTrouble === NO_ANSWER ? { word: "does not answer", isGood: false } : UNKNOWN;
  return { word: ready.ready ? (ready.degraded ? "yes, degraded" : "yes") : "no", isGood: ready.ready && !ready.degraded };
}

function Stores({ health }: { health: Health }) {
  const { ready, readyTrouble, metricsTrouble, last, isAsked } = health;
  const drift = last ? driftOf(last) : null;
  if (!isAsked) return <p class="muted center">Asking the server…</p>;
  return (
    <>
      {readyTrouble !== null && readyTrouble !== metricsTrouble && (
        <p class="card trouble" role="alert">
          {readyTrouble}
        </p>
      )}
      <dl class="tiles">
        <Tile name="Ready" {...readySays(health)} />
        <Tile name="Database" {...(ready ? SAYS[ready.database] : UNKNOWN)} />
        <Tile name="Cache" {...(ready ? SAYS[ready.cache] : UNKNOWN)} />
        {ready?.replica && <Tile name="Replica" {...SAYS[ready.replica]} />}
        <Tile name="Node" {...(ready ? SAYS[ready.node] : UNKNOWN)} />
        {last && drift !== null && metricsTrouble === null && (
          <Tile name={`Drift, in ${count(scrubbedOf(last))} comparisons`} word={count(drift)} isGood={drift === 0} />
        )}
      </dl>
    </>
  );
}

function Tile({ name, word, isGood }: Said & { name: string }) {
  const kind = isGood === null ? "unknown" : isGood ? "good" : "bad";
  return (
    <div class={`tile ${kind}`}>
      <dt>{name}</dt>
      <dd>
        <span aria-hidden="true">{SIGNS[kind]}</span> {word}
      </dd>
    </div>
  );
}

const SIGNS = { good: "●", bad: "▲", unknown: "?" };

const ROUTES: Column<RouteRates>[] = [
  { name: "Route", isWide: true, cell: ({ route }) => <code>{route}</code> },
  { name: "Requests a second", isNumber: true, cell: ({ rate }) => decimal(rate) },
  { name: "Errors a second", isNumber: true, cell: ({ errors }) => (errors > 0 ? <b class="warn">{decimal(errors)}</b> : "0") },
  { name: "Median", isNumber: true, cell: ({ median }) => (median === null ? "" : duration(median)) },
  { name: "99th percentile", isNumber: true, cell: ({ slowest }) => (slowest === null ? "" : duration(slowest)) },
];
