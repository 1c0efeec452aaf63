// Numbers and times, as people read them.

const COUNT = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function count(value: number): string {
  return COUNT.format(value);
}

/** 12, 999, 1.2K. */
export function shortCount(value: number): string {
  return value < 1_000 ? COUNT.format(value) : SHORT.format(value);
}

/** Of what rises and falls: three digits are enough. */
export function decimal(value: number): string {
  if (value >= 100) return shortCount(Math.round(value));
  return value.toFixed(value >= 10 ? 1 : 2).replace(/\.0+$/, "");
}

export function duration(seconds: number): string {
  if (seconds >= 1) return `${decimal(seconds)} s`;
  return `${decimal(seconds * 1_000)} ms`;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share >= 0.9995 || share === 0 ? 0 : 1)} %`;
}

/** In the reader's own time zone; the title has the exact one. */
export function Time({ at }: { at: string }) {
  const date = new Date(at);
  const shown = Number.isNaN(date.getTime()) ? at : date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
  return (
    <time dateTime={at} title={at}>
      {shown}
    </time>
  );
}
