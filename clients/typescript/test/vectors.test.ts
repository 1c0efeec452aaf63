// Every vector in clients/vectors, played to the state machines. With WRITE_VECTORS=1 the test writes
// what the machines do into the vectors: read the difference before you commit it.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { initialInbox, stepInbox } from "../src/inbox/step.js";
import type { InboxConfig, InboxEffect, InboxEvent, InboxPosition } from "../src/inbox/types.js";
import { initialPoller, stepPoller } from "../src/poller/step.js";
import type { PollerConfig, PollerEffect, PollerEvent } from "../src/poller/types.js";

interface Step<Event, Effect> {
  at: number;
  event: Event;
  effects: Effect[];
}

interface Vector<Config, Event, Effect> {
  rule: string;
  config: Config;
  position?: InboxPosition | null;
  steps: Step<Event, Effect>[];
}

type Play<Config, Event, Effect> = (vector: Vector<Config, Event, Effect>) => Effect[][];

const root = fileURLToPath(new URL("../../vectors/", import.meta.url));
const isWriting = process.env.WRITE_VECTORS !== undefined;

/** A machine must not change what it was given: whoever holds an older state still has it. */
function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) frozen(part);
  }
  return value;
}

const playPoller: Play<PollerConfig, PollerEvent, PollerEffect> = ({ config, steps }) => {
  let state = initialPoller(config);
  return steps.map(({ at, event }) => {
    const [next, effects] = stepPoller(frozen(state), frozen(event), at);
    state = next;
    return effects;
  });
};

const playInbox: Play<InboxConfig, InboxEvent, InboxEffect> = ({ config, position, steps }) => {
  let state = initialInbox(config, position ?? null);
  return steps.map(({ at, event }) => {
    const [next, effects] = stepInbox(frozen(state), frozen(event), at);
    state = next;
    return effects;
  });
};

/** One event and one effect a line, so that a vector can be read. */
function written(vector: Vector<unknown, unknown, unknown>): string {
  const line = (value: unknown) => JSON.stringify(value);
  const steps = vector.steps.map(({ at, event, effects }) => {
    const list = effects.length === 0 ? "[]" : `[\n${effects.map((effect) => `      ${line(effect)}`).join(",\n")}\n    ]`;
    return `  { "at": ${at},\n    "event": ${line(event)},\n    "effects": ${list} }`;
  });
  const position = vector.position === undefined ? "" : `  "position": ${line(vector.position)},\n`;
  const head = `{\n  "rule": ${line(vector.rule)},\n  "config": ${line(vector.config)},\n${position}`;
  return `${head}  "steps": [\n${steps.join(",\n")}\n]}\n`;
}

function suite<Config, Event, Effect>(folder: string, play: Play<Config, Event, Effect>): void {
  const names = readdirSync(`${root}${folder}`).filter((name) => name.endsWith(".json"));
  describe(folder, () => {
    test.each(names)("%s", (name) => {
      const file = `${root}${folder}/${name}`;
      const vector = JSON.parse(readFileSync(file, "utf8")) as Vector<Config, Event, Effect>;
      const effects = play(vector);
      const played = { ...vector, steps: vector.steps.map((step, index) => ({ ...step, effects: effects[index] ?? [] })) };
      if (isWriting) writeFileSync(file, written(played));
      else expect(played.steps).toEqual(vector.steps);
    });
  });
}

suite("poller", playPoller);
suite("inbox", playInbox);
