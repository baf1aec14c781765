/** Finds and starts the Chromium of this machine. It downloads nothing. */
import { accessSync, constants } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Path in Debian's package. */
const DEBIAN = '/usr/bin/chromium';

/**
 * No traffic leaves this machine, and no graphics processor is needed. A container often runs as root, where the
 * sandbox refuses to start.
 */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Returns the path of the program: `SVC_CHROMIUM`, or Debian's. */
export function chromiumPath(): string {
  return process.env.SVC_CHROMIUM ?? DEBIAN;
}

/** Returns what is missing, in words; null if Chromium can start. */
export function missingChromium(): string | null {
  const path = chromiumPath();
  try {
    accessSync(path, constants.X_OK);
    return null;
  } catch {
    return `chromium at ${path} (apt-get install chromium, or SVC_CHROMIUM=<path>)`;
  }
}

/** Starts Chromium without a window, with a new, empty profile. */
export function startChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath(), args: ARGUMENTS });
}
