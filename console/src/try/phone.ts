// One user's phone: a poller, the log of its requests, and the streams behind its numbers.

import { type Headmark, pageSignals, type Signals, UnreadPoller, type UnreadView } from "@headmark/client";
import type { Session } from "../session.js";
import { Store } from "../store.js";
import type { Explain } from "../terms.js";
import type { Person } from "./people.js";
import { RequestLog } from "./request-log.js";

export const NOTHING_YET: UnreadView = { summary: null, status: "loading", trouble: null };

/** The server is the one that served the page. It may be reached where the browser knows no network. */
const signals: Signals = (listener) => pageSignals((signal) => signal !== "offline" && listener(signal));

export class Phone {
  readonly log = new RequestLog();
  readonly view = new Store<UnreadView>(NOTHING_YET);
  /** Head and mark of each stream. No app asks for them: it needs the numbers alone. */
  readonly streams = new Store<Explain | null>(null);
  /** What the phone sends. */
  readonly app: Headmark;
  /** What the backend sends when this user does something. */
  readonly backend: Headmark;
  readonly #unlisted: Headmark;
  #poller: UnreadPoller;
  #stop: (() => void) | null = null;
  #explaining = false;
  #explainAgain = false;

  constructor(
    readonly person: Person,
    session: Session,
  ) {
    this.app = session.headmark(this.log.fetch(false));
    this.backend = session.headmark(this.log.fetch(true));
    this.#unlisted = session.headmark();
    this.#poller = this.#newPoller(0);
  }

  get user(): string {
    return this.person.id;
  }

  /** Polls until `stop`, each held for up to `waitS`. */
  start(waitS: number): void {
    this.stop();
    this.#poller = this.#newPoller(waitS);
    this.#stop = this.#poller.subscribe((view) => this.#show(view));
  }

  stop(): void {
    this.#stop?.();
    this.#stop = null;
  }

  /** Marks as read what the phone shows. */
  reset(kind: "counters" | "broadcasts" | "dots", name: string, upTo?: number): void {
    this.#poller.reset(kind, name, upTo);
  }

  /** As an app does when it is opened: the poller may be in a long pause, after a restart of the server. */
  wake(): void {
    if (this.log.isQuiet) this.#poller.refresh();
  }

  #newPoller(waitS: number): UnreadPoller {
    return new UnreadPoller({ headmark: this.app, user: this.user, waitS, signals });
  }

  #show(view: UnreadView): void {
    // A new poller knows nothing yet; what the one before it showed is still right.
    const summary = view.summary ?? this.view.value.summary;
    const isNews = summary !== this.view.value.summary;
    this.view.set({ ...view, summary });
    if (isNews) void this.#explain();
  }

  /** One request at a time; the last one is newer than every change before it. */
  async #explain(): Promise<void> {
    this.#explainAgain = this.#explaining;
    if (this.#explaining) return;
    this.#explaining = true;
    try {
      const { data } = await this.#unlisted.GET("/v1/users/{user}/badges/explain", { params: { path: { user: this.user } } });
      this.streams.set(data);
    } catch {
      // The numbers come from the poll, which shows the trouble. The pictures come with the next change.
    }
    this.#explaining = false;
    if (this.#explainAgain) await this.#explain();
  }
}
