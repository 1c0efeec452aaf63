// Where the texts of a page stand: what a reader sees, and no markup says.

import type { Page } from "playwright-core";

/** Longer words may break: no screen has room for them. */
const LONGEST_WORD = 40;

/** Words of the page's tables that stand on more than one line. */
export async function brokenWords(page: Page): Promise<string[]> {
  return await page.evaluate((longest) => {
    const broken: string[] = [];
    for (const text of textsIn("th, td")) {
      for (const word of text.data.matchAll(/[\p{L}\p{N}_]+/gu)) {
        const tops = new Set(rectsOf(text, word.index, word.index + word[0].length).map(({ top }) => Math.round(top)));
        if (tops.size > 1 && word[0].length <= longest) broken.push(word[0]);
      }
    }
    return broken;

    function textsIn(selector: string): Text[] {
      return [...document.querySelectorAll(selector)].flatMap((element) => {
        const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
        const found: Text[] = [];
        while (walker.nextNode()) found.push(walker.currentNode as Text);
        return found;
      });
    }
    function rectsOf(text: Text, from: number, to: number): DOMRect[] {
      const range = document.createRange();
      range.setStart(text, from);
      range.setEnd(text, to);
      return [...range.getClientRects()];
    }
  }, LONGEST_WORD);
}

/** Texts with an override of the direction that nothing keeps from the texts around them. */
export async function loose(page: Page): Promise<string[]> {
  return await page.evaluate(() => {
    const found: string[] = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const text = walker.currentNode as Text;
      if (/[\u202a-\u202e\u2066-\u2069]/.test(text.data) && !text.parentElement?.closest("bdi")) found.push(text.data);
    }
    return found;
  });
}

/** Whether the page shows these words from left to right. */
export async function readsForward(page: Page, selector: string, first: string, second: string): Promise<boolean> {
  return await page.locator(selector).evaluate(
    (element, words) => {
      const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      const lefts = new Map<string, number>();
      while (walker.nextNode()) {
        const text = walker.currentNode as Text;
        for (const word of words) {
          const at = text.data.indexOf(word);
          if (at < 0) continue;
          const range = document.createRange();
          range.setStart(text, at);
          range.setEnd(text, at + word.length);
          lefts.set(word, range.getBoundingClientRect().left);
        }
      }
      const [one, two] = words.map((word) => lefts.get(word));
      if (one === undefined || two === undefined) throw new Error(`not in the text: ${words}`);
      return one < two;
    },
    [first, second],
  );
}
