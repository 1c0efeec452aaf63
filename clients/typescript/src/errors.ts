// The two ways in which a request fails: the server refused it, or no usable answer came.

import type { Problem, ProblemCode } from "./types.js";

/** The server answered with an error. `code` is stable; `null`: it was not Headmark that answered. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly status: number;
  readonly code: ProblemCode | null;
  /** The whole problem; null as above. */
  readonly problem: Problem | null;
  /** How long to wait before the same request may succeed. */
  readonly retryAfterS: number | undefined;
  /** Names the request in the server's log. */
  readonly requestId: string | null;

  constructor(response: Response, body: string) {
    const problem = problemOf(body);
    super(problem ? `${problem.title}: ${problem.detail}` : `HTTP status ${response.status}`);
    this.status = response.status;
    this.code = problem?.code ?? null;
    this.problem = problem;
    this.retryAfterS = retryAfterOf(response.headers);
    this.requestId = response.headers.get("x-request-id");
  }
}

/** No usable answer: the server may or may not have done what was asked. */
export class NoAnswerError extends Error {
  override readonly name = "NoAnswerError";
  readonly reason: "network" | "timeout" | "malformed";

  constructor(reason: NoAnswerError["reason"], cause?: unknown) {
    super(`no answer: ${reason}`, { cause });
    this.reason = reason;
  }
}

/** Null: it is of a proxy or a gateway, which may have codes of its own. The status says enough. */
function problemOf(body: string): Problem | null {
  try {
    const problem = JSON.parse(body) as Partial<Problem> | null;
    const isProblem = [problem?.code, problem?.title, problem?.detail].every((part) => typeof part === "string");
    return isProblem ? (problem as Problem) : null;
  } catch {
    // The page of a proxy.
    return null;
  }
}

/** `Retry-After` in seconds; the header may also be a date. */
export function retryAfterOf(headers: Headers): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1_000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds));
}
