// How many windows hold polls. Over HTTP/1.1 a browser opens six connections to a server, for all its
// windows together. Two windows with three held polls each would leave none for anything else.

const CHANNEL = "headmark-console";
const BEAT_MS = 2_000;
/** A window that was not heard for so long is gone. */
const GONE_MS = 3 * BEAT_MS;

const LONG_WAIT_S = 30;
const SHORT_WAIT_S = 1;

type Message = { window: string; isHere: boolean; isNew: boolean };

/** Calls the listener with how long polls may wait, now and whenever it changes. */
export function watchWindows(listener: (waitS: number) => void): () => void {
  const own = crypto.getRandomValues(new Uint32Array(2)).join("-");
  const others = new Map<string, number>();
  const channel = new BroadcastChannel(CHANNEL);
  let told = 0;
  const tell = () => {
    const now = performance.now();
    for (const [other, heardAt] of others) if (now - heardAt > GONE_MS) others.delete(other);
    const waitS = others.size > 0 ? SHORT_WAIT_S : LONG_WAIT_S;
    if (waitS === told) return;
    told = waitS;
    listener(waitS);
  };
  const say = (isHere: boolean, isNew = false) => channel.postMessage({ window: own, isHere, isNew } satisfies Message);
  // A hidden window holds nothing.
  const beat = (isNew = false) => say(document.visibilityState === "visible", isNew);
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.isHere) others.set(data.window, performance.now());
    else others.delete(data.window);
    if (data.isNew) beat();
    tell();
  };
  const onVisible = () => beat();
  const onLeave = () => say(false);
  document.addEventListener("visibilitychange", onVisible);
  window.addEventListener("pagehide", onLeave);
  const timer = setInterval(() => {
    beat();
    tell();
  }, BEAT_MS);
  beat(true);
  tell();
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", onVisible);
    window.removeEventListener("pagehide", onLeave);
    say(false);
    channel.close();
  };
}
