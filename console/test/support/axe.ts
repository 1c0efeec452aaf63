// axe-core in the page. It is evaluated by the debugger, which the page's policy does not bind.

import axe from "axe-core";
import type { Page } from "playwright-core";
import { expect } from "vitest";

declare global {
  interface Window {
    axe: typeof axe;
  }
}

/** No finding of any rule, those of good practice included. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const findings = await page.evaluate(async () => {
    const { violations, passes } = await window.axe.run(document);
    const found = violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
    );
    return { found, passes: passes.length };
  });
  expect(findings.found).toEqual([]);
  expect(findings.passes).toBeGreaterThan(15);
}
