// What went wrong, as a sentence for people.

import { NoAnswerError, ProblemError } from "@headmark/client";

export function sentenceOf(error: unknown): string {
  if (error instanceof ProblemError) {
    const details = error.problem?.errors?.map(({ pointer, detail }) => `${pointer}: ${detail}`) ?? [];
    const why = details.length > 0 ? details.join(", ") : (error.problem?.detail ?? error.message);
    return `${error.status} ${error.code ?? "unknown"}: ${why}`;
  }
  if (error instanceof NoAnswerError) return "The server does not answer.";
  return error instanceof Error ? error.message : String(error);
}
