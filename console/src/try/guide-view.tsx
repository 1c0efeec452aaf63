// The guide, and the line that says what happened last.

import { useState } from "preact/hooks";
import { STEPS } from "./guide.js";
import type { World } from "./world.js";

export interface Said {
  text: string;
  isTrouble: boolean;
  /** The server did not answer: not true any more once it does. */
  isAway?: boolean;
}

/** Runs what the user asked for, and says how it went. */
export type Run = (act: () => Promise<string>) => Promise<boolean>;

export function Guide({ world, said, run }: { world: World; said: Said | null; run: Run }) {
  const [at, setAt] = useState(0);
  const [isBusy, setBusy] = useState(false);
  const step = STEPS[at];
  const go = async () => {
    if (!step || isBusy) return;
    setBusy(true);
    // Meanwhile the rest may have been skipped.
    if (await run(() => step.run(world))) setAt((now) => (now === at ? at + 1 : now));
    setBusy(false);
  };
  return (
    <section class="card guide" aria-label="Guide">
      <div class="step">
        <p class="where muted">{step ? `Step ${at + 1} of ${STEPS.length}` : "That is all of it"}</p>
        <h2>{step ? step.title : "Now try it yourself"}</h2>
        <p>{step ? step.watch : "Every phone has buttons for its user. Tap a row to open it, as its user would."}</p>
      </div>
      <div class="go">
        {/* Never disabled: the focus would be lost, and with it the way on by keyboard. */}
        <button type="button" class="primary" aria-disabled={isBusy} onClick={() => (step ? void go() : setAt(0))}>
          {step ? "Do it" : "Start again"}
        </button>
        {step && at > 0 && (
          <button type="button" class="quiet" onClick={() => setAt(STEPS.length)}>
            Skip the rest
          </button>
        )}
      </div>
      <p class={said?.isTrouble ? "said trouble" : "said"} role="status">
        {said?.text ?? "What happened appears here."}
      </p>
    </section>
  );
}
