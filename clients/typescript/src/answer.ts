// What the state machines see of an HTTP answer.

/** The parts of an HTTP answer that the machines look at. */
export interface Answer {
  status: number;
  /** The `code` of a problem. */
  code?: string;
  retry_after_s?: number;
  poll_interval_s?: number;
}

/** Why a request brought nothing. */
export interface Trouble {
  /** The HTTP status; 0 when no usable answer came. */
  status: number;
  code: string;
}

export const NO_ANSWER: Trouble = { status: 0, code: "no_answer" };

/** A success without a usable body is no answer of Headmark: a captive portal, a broken proxy. */
export function troubleOf(answer: Answer): Trouble {
  return { status: answer.status, code: answer.code ?? "unexpected_answer" };
}
