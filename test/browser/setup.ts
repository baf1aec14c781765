/**
 * Runs once before the tests, in vitest's main process: prints why all tests are skipped where there is no Chromium.
 */
import { missingChromium } from '../../bench/browser/chromium.ts';

export default function setup(): void {
  const missing = missingChromium();
  if (missing !== null) process.stdout.write(`browser: skipped, needs ${missing}\n`);
}
