/** Chromium as this machine has it: where it is and how it starts. Nothing is downloaded. */
import { accessSync, constants } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Where Debian's package puts it. */
const DEBIAN = '/usr/bin/chromium';

/** Nothing leaves this machine, and nothing needs a graphics processor. A container often runs as root, where the sandbox refuses to start. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Path of the program: `SVC_CHROMIUM`, or Debian's. */
export function chromiumPath(): string {
  return process.env.SVC_CHROMIUM ?? DEBIAN;
}

/** What is missing, in words; null where Chromium can start. */
export function missingChromium(): string | null {
  const path = chromiumPath();
  try {
    accessSync(path, constants.X_OK);
    return null;
  } catch {
    return `chromium at ${path} (apt-get install chromium, or SVC_CHROMIUM=<path>)`;
  }
}

/** Starts it without a window, with a new and empty profile. */
export function startChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath(), args: ARGUMENTS });
}
