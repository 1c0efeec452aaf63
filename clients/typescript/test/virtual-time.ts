// A clock that jumps from event to event, and dice that fall the same way for the same seed.

export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** From 0 to 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  upTo(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }
}

export class VirtualTime {
  now = 0;
  #due: { at: number; order: number; run: () => void }[] = [];
  #order = 0;

  /** Runs something after `ms`; the result cancels it. */
  after(ms: number, run: () => void): () => void {
    const entry = { at: this.now + ms, order: this.#order, run };
    this.#order += 1;
    this.#due.push(entry);
    return () => {
      this.#due = this.#due.filter((other) => other !== entry);
    };
  }

  /** Lets time pass until `at`. */
  runUntil(at: number): void {
    for (;;) {
      const [next] = this.#due.filter((entry) => entry.at <= at).sort((a, b) => a.at - b.at || a.order - b.order);
      if (!next) break;
      this.#due = this.#due.filter((entry) => entry !== next);
      this.now = Math.max(this.now, next.at);
      next.run();
    }
    this.now = at;
  }
}
