#!/usr/bin/env node
/**
 * Starts `svc` with the arguments of this process: prints the version, or runs the bundle of the requested command,
 * next to this file. It is loaded at every start, so it loads only what that needs.
 */
import { join } from 'node:path';
import { VERSION } from '../protocol/records/version.ts';
import { type BundleName, commandOf } from './commands.ts';
import { cacheDirectory, cacheFor, runBundle } from './frame/code-cache.ts';
import { guardOutput } from './frame/lost-output.ts';

/** Digest of each bundle, from the build (`bundle.mjs`). */
declare const BUNDLE_DIGESTS: Readonly<Record<BundleName | 'help', string>>;

const argv = process.argv.slice(2);
const row = commandOf(argv);
guardOutput(process, { stays: row?.stays === true, carriesFiles: row?.name === 'stream' });
if (argv[0] === '--version' || argv[0] === '-V') process.stdout.write(`${VERSION}\n`);
else void start();

async function start(): Promise<void> {
  // Loading makes the young generation grow, so this comes first.
  if (row?.stays) (await import('./frame/young-generation.ts')).keepYoungGenerationSmall();
  const name = row?.bundle ?? 'help';
  const directory = cacheDirectory();
  const cache = directory === undefined ? undefined : cacheFor(BUNDLE_DIGESTS[name], nameOfRun(row?.name), directory);
  const { run } = runBundle(join(__dirname, `${name}.cjs`), cache) as { run: (argv: readonly string[]) => Promise<number> };
  await run(argv);
}

/** A command that only shows its help runs little of its code, but its cached code must serve the next run. */
function nameOfRun(command = 'svc'): string {
  return argv.some((word) => word === '--help' || word === '-h' || word === 'help') ? `${command}-help` : command;
}
