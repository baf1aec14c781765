#!/usr/bin/env node
/**
 * Starts `svc` with the arguments of this process: prints the version, or runs the bundle of the requested command,
 * next to this file. It is loaded at every start, so it loads only what that needs.
 *
 * 1. The table `commands.ts` has the bundle of each command, and what `svc --help` shows of it: help loads no bundle.
 * 2. A command that stays first limits V8's young generation (`frame/young-generation.ts`).
 * 3. `frame/code-cache.ts` runs the bundle with the code that V8 compiled in an earlier run. A bundle is one CommonJS
 *    function in ASCII, without `import()`; it loads the core from `dist/core.wasm` (`frame/embedded.ts`).
 * 4. `frame/run.ts` loads only that command (`bundles/`: name → loader), and `frame/program.ts` runs it. Tests run the
 *    same program in their own process (`program.ts`).
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
