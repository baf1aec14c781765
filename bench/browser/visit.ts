/**
 * Runs one task in a new page. Any error of the page fails the task: an exception, an error in the console, a violation
 * of the policy, a crash.
 */
import type { Browser, Page } from 'playwright-core';
import type { Site } from './site.ts';
import type { Task } from './task.ts';

/**
 * Runs `task` in a page without history or storage. Returns its value, as JSON.
 * @param patience ms for the whole task
 * @throws Error with the text of each error of the page or of the task
 */
export async function visit(browser: Browser, site: Site, task: Task, patience: number): Promise<unknown> {
  const { url, outcome, forget } = site.page(task);
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const errors = new PageErrors(page);
    const late = AbortSignal.timeout(patience);
    const tooLate = new Promise<never>((_, reject) => {
      late.addEventListener('abort', () => reject(new Error(`${task.call} gave no outcome within ${patience} ms`)), { once: true });
    });
    const arrived = page.goto(url, { waitUntil: 'commit', timeout: patience }).then(() => outcome);
    const result = await Promise.race([arrived, errors.crash, tooLate]).catch((error: unknown) => ({ error: String(error) }));
    // Messages that the page has sent so far arrive before it closes.
    await page.close();
    const all = [...errors.all, ...('error' in result ? [result.error] : [])];
    if (all.length > 0) throw new Error([...new Set(all)].join('\n'));
    return 'value' in result ? result.value : undefined;
  } finally {
    forget();
    await context.close();
  }
}

/**
 * Errors of a page and of its workers. Only a crash ends the wait: otherwise the outcome still arrives, and says more.
 */
class PageErrors {
  readonly all: string[] = [];
  /** Rejects when the page crashes. */
  readonly crash: Promise<never>;

  constructor(page: Page) {
    page.on('pageerror', (error) => this.all.push(`page error: ${error.stack ?? error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error') this.all.push(`console error: ${message.text()}`);
    });
    this.crash = new Promise((_, reject) => {
      page.on('crash', () => reject(new Error('the page crashed')));
    });
    this.crash.catch(() => {});
  }
}
