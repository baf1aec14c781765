/** Before a run, in vitest's own process: says why all tests are skipped where there is no Chromium. */
import { missingChromium } from '../../bench/browser/chromium.ts';

export default function setup(): void {
  const missing = missingChromium();
  if (missing !== null) process.stdout.write(`browser: skipped, needs ${missing}\n`);
}
