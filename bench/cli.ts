/**
 * Processor time (user and system) of the command `svc` from start to end, beside bare Node that does nothing: help,
 * version, and the first CoAP answer of a known device through a base station on loopback. `first-run` is the same
 * without the compiled code that `svc` caches between runs.
 *
 * 1. Start a base station and an attached device as separate processes; a client connects once.
 * 2. In each round, run each command in turn. Bash's `time` reports a child's processor time to the millisecond; Node
 *    does not.
 *
 * The commands have a separate cache folder. Each runs once before the counted rounds.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { withDirectory } from './processes/parent.ts';
import { type Goal, type Report, type Row, spread } from './report.ts';
import { fromRoot } from './root.ts';

const ROUNDS = 21;
const QUICK_ROUNDS = 7;
const MAIN = fromRoot('dist/svc/main.cjs');
const BARE = 'bare';
/** Goals for Node 20, which takes twice as long to start, and for Node 22 and later. */
const GOALS = { old: { help: 1.5, version: 1.5, coap: 2.3 }, new: { help: 1.8, version: 1.8, coap: 4.5 } } as const;
const LAST_OLD = 20;

interface Measured {
  readonly args: readonly string[];
  readonly variables?: NodeJS.ProcessEnv;
}

interface Scene {
  readonly state: string;
  readonly variables: NodeJS.ProcessEnv;
}

interface CliOptions {
  /** Path of another Node that runs the commands. */
  readonly node?: string;
  readonly quick?: boolean;
}

export async function run(progress: (step: string) => void, { node = process.execPath, quick = false }: CliOptions): Promise<Report> {
  const rounds = quick ? QUICK_ROUNDS : ROUNDS;
  const times = await withDirectory((directory) => withDevice(directory, (scene) => measure(node, scene, rounds, progress)));
  const bare = { bare: spread(times[BARE]!) };
  const cases = Object.keys(times).filter((name) => name !== BARE);
  const rows = cases.map((name): Row => ({ case: name, unit: 'ms', better: 'lower', ours: spread(times[name]!), peers: bare }));
  const version = checked(spawnSync(node, ['--version'], { encoding: 'utf8' })).trim();
  const goals = GOALS[Number.parseInt(version.slice(1), 10) > LAST_OLD ? 'new' : 'old'];
  return {
    bench: 'cli',
    about: `processor time of svc from start to end, run by Node ${version}, beside that Node doing nothing.`,
    rows,
    goals: Object.entries(goals).map(([name, atMost]): Goal => ({ case: name, peer: BARE, atMost })),
  };
}

function measure(
  node: string,
  { state, variables }: Scene,
  rounds: number,
  progress: (step: string) => void,
): Promise<Record<string, number[]>> {
  const coap = [MAIN, 'coap', 'GET', '/thermostat/target', '--state', state];
  const commands: Record<string, Measured> = {
    [BARE]: { args: ['-e', '0'] },
    help: { args: [MAIN, '--help'] },
    version: { args: [MAIN, '--version'] },
    coap: { args: coap },
    'first-run': { args: coap, variables: { NODE_DISABLE_COMPILE_CACHE: '1' } },
  };
  const times: Record<string, number[]> = Object.fromEntries(Object.keys(commands).map((name) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    progress(`round ${round} of ${rounds}`);
    for (const [name, { args, variables: more }] of Object.entries(commands)) {
      const time = processorTime(node, args, { ...variables, ...more });
      if (round > 0) times[name]!.push(time);
    }
  }
  return Promise.resolve(times);
}

/** Returns the processor time of a command, ms. @throws Error when it fails */
function processorTime(node: string, args: readonly string[], variables: NodeJS.ProcessEnv): number {
  const script = 'TIMEFORMAT="%3U %3S"; time "$@" > /dev/null';
  const ran = spawnSync('bash', ['-c', script, 'bash', node, ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...variables, LC_ALL: 'C' },
  });
  checked(ran);
  const [user = Number.NaN, system = Number.NaN] = ran.stderr.trim().split('\n').at(-1)!.split(' ').map(Number);
  return (user + system) * 1000;
}

async function withDevice<T>(directory: string, work: (scene: Scene) => Promise<T>): Promise<T> {
  const [data, home, state] = ['station', 'device', 'client'].map((name) => join(directory, name)) as [string, string, string];
  const variables = { XDG_CACHE_HOME: join(directory, 'cache') };
  const running: ChildProcess[] = [];
  const svc = (...args: string[]) => JSON.parse(checked(spawnSync(process.execPath, [MAIN, ...args, '--json'], { encoding: 'utf8' })));
  const start = async (...args: string[]) => {
    const child = spawn(process.execPath, [MAIN, ...args, '--json'], { stdio: ['ignore', 'pipe', 'ignore'] });
    running.push(child);
    return events(child);
  };
  try {
    const station = await (await start('basestation', '--data', data, '--port', '0', '--connects-per-device', '1000'))('listening');
    const server = ['--server', `https://127.0.0.1:${station.port}`, '--server-fingerprint', String(station.fingerprint)];
    const client = svc('key', 'create', '--state', state);
    svc('admin', 'product', 'add', 'pr-bench', '--data', data);
    const identity = ['device', '--data', home, '--product', 'pr-bench', '--device-id', 'de-bench', ...server];
    const { fingerprint, pairingString } = svc(...identity, '--init');
    svc('admin', 'device', 'add', 'pr-bench', 'de-bench', '--fingerprint', fingerprint, '--data', data);
    const device = await start('device', '--data', home, '--local-port', '0', '--p2p-port', '0', '--allow', client.fingerprint);
    await device('attached');
    svc('coap', 'GET', '/thermostat/target', '--state', state, '--device', pairingString, ...server);
    return await work({ state, variables });
  } finally {
    for (const child of running.reverse()) child.kill('SIGTERM');
    await Promise.all(running.map((child) => child.exitCode ?? new Promise((resolve) => child.once('exit', resolve))));
  }
}

/** Returns a function that waits for an event of a command that prints its events as JSON lines. */
function events(child: ChildProcess): (name: string) => Promise<Record<string, unknown>> {
  const lines = createInterface({ input: child.stdout! });
  const seen: Record<string, unknown>[] = [];
  lines.on('line', (line) => seen.push(JSON.parse(line)));
  const find = (name: string) => seen.find(({ event }) => event === name);
  return (name) =>
    new Promise((resolve, reject) => {
      const look = () => {
        const found = find(name);
        if (found !== undefined) resolve(found);
      };
      look();
      lines.on('line', look);
      child.once('exit', () => reject(new Error(`svc ended before it printed "${name}"`)));
    });
}

/** Returns the standard output of a command. @throws Error when it failed */
function checked({ status, stdout, stderr, error }: { status: number | null; stdout: string; stderr: string; error?: Error }): string {
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`a command failed: ${stderr.trim()}`);
  return stdout;
}
