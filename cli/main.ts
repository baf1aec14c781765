#!/usr/bin/env node
/**
 * Starts `svc` with the arguments of this process: prints the version, or runs the bundle of the command that is asked for, beside this file.
 * It is loaded at every start, so it loads no more than that needs.
 */
import { join } from 'node:path';
import { VERSION } from '../protocol/records/version.ts';
import { type BundleName, commandOf } from './commands.ts';
import { cacheDirectory, cacheFor, runBundle } from './frame/code-cache.ts';
import { guardOutput } from './frame/lost-output.ts';

/** Of each bundle, by the build (`bundle.mjs`). */
declare const BUNDLE_DIGESTS: Readonly<Record<BundleName | 'help', string>>;

const argv = process.argv.slice(2);
const row = commandOf(argv);
guardOutput(process, { stays: row?.stays === true, carriesFiles: row?.name === 'stream' });
if (argv[0] === '--version' || argv[0] === '-V') process.stdout.write(`${VERSION}\n`);
else void start();

async function start(): Promise<void> {
  // What is loaded makes it grow, so this comes before.
  if (row?.stays) (await import('./frame/young-generation.ts')).keepYoungGenerationSmall();
  const name = row?.bundle ?? 'help';
  const directory = cacheDirectory();
  const cache = directory === undefined ? undefined : cacheFor(BUNDLE_DIGESTS[name], nameOfRun(row?.name), directory);
  const { run } = runBundle(join(__dirname, `${name}.cjs`), cache) as { run: (argv: readonly string[]) => Promise<number> };
  await run(argv);
}

/** A command that shows its help runs through little of itself, and what is kept of a run has to be of use to the next one. */
function nameOfRun(command = 'svc'): string {
  return argv.some((word) => word === '--help' || word === '-h' || word === 'help') ? `${command}-help` : command;
}
