/**
 * Before and after a run of the lab, in vitest's own process.
 *
 * 1. Checks the lab's requirements; when one is missing, prints one line that names it and skips every test.
 * 2. Compiles the link emulator; where the kernel has netem, that makes the links, unless SVC_LAB_LINK is set.
 * 3. Starts a process that outlives this one, however it ends, and then removes the namespaces of this run with their
 *    processes.
 * 4. At the end prints the table of figures; they stay in `build/lab/figures.jsonl`.
 */
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, mkdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { fromRoot } from '../../bench/root.ts';
import { EMULATOR, EMULATOR_SOURCE } from './emulator.ts';
import { hasCongestionControl } from './link.ts';
import { namePrefix } from './namespaces.ts';
import { netemWorks } from './netem.ts';
import { beginReport, report } from './report.ts';

const REPORT = fromRoot('build/lab/figures.jsonl');

/**
 * Waits for the end of its input, which is our end; then removes for some seconds, since a test may just be creating
 * another one.
 */
const CLEANER = `cat > /dev/null
for round in 1 2 3 4 5 6; do
  for name in $(ip netns list | cut -d ' ' -f 1 | grep "^$PREFIX"); do
    ip netns pids "$name" | xargs -r kill -9
    ip netns del "$name"
  done
  sleep 0.5
done`;

export default function setup(): () => void {
  const missing = missingHere();
  if (missing !== null) {
    process.stdout.write(`lab: skipped, needs ${missing}\n`);
    process.env.SVC_LAB_MISSING = missing;
    return () => {};
  }
  compile();
  process.env.SVC_LAB_RUN = String(process.pid);
  startCleaner(namePrefix(process.pid));
  beginReport(REPORT);
  return () => process.stdout.write(`\n${report(REPORT)}`);
}

/** In a process group of its own, which Ctrl-C does not reach. */
function startCleaner(prefix: string): void {
  const env = { ...process.env, PREFIX: prefix };
  const cleaner = spawn('sh', ['-c', CLEANER], { stdio: ['pipe', 'ignore', 'ignore'], detached: true, env });
  cleaner.unref();
  (cleaner.stdin as Socket).unref();
}

/** The first missing requirement, in words. */
function missingHere(): string | null {
  if (process.platform !== 'linux') return 'Linux';
  if (process.getuid?.() !== 0) return 'root';
  if (!runs('cc', '--version')) return 'a C compiler (cc)';
  if (!runs('ip', '-V')) return 'iproute2 (ip)';
  if (!opens('/dev/net/tun')) return '/dev/net/tun';
  if (!hasCongestionControl('cubic')) return 'TCP CUBIC in the kernel';
  const name = `${namePrefix(process.pid)}probe`;
  const allowed = runs('ip', 'netns', 'add', name);
  process.env.SVC_LAB_LINK ??= allowed && netemWorks(name) ? 'netem' : 'emulator';
  runs('ip', 'netns', 'del', name);
  return allowed ? null : 'the right to create network namespaces';
}

function runs(command: string, ...args: string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
}

function opens(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function compile(): void {
  mkdirSync(new URL('.', `file://${EMULATOR}`), { recursive: true });
  const { status, stderr } = spawnSync('cc', ['-O2', '-Wall', '-Wextra', '-Werror', '-o', EMULATOR, EMULATOR_SOURCE], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`the link emulator does not compile: ${stderr}`);
}
