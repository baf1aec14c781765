/**
 * Processor time of a relayed connect and of an attach, on loopback, with default options and separate processes, one
 * after the other. Its peer `dh` is the X25519 work of one side of a Noise XX handshake, warm: a new key and three
 * shared secrets.
 *
 *   client, device, station        a connect that is closed at once, at each party
 *   client-direct, device-direct   a connect that is closed once it is direct, or of another checkout after 300 ms
 *   connect-p50                    ms until a connect resolves
 *   attach, device-start           a device that starts, attaches with its first upload of tokens and closes: at the
 *                                  base station, and at the device
 *   idle-device                    ms of processor time of an attached device in a minute
 *   busy-connect-p50               ms until a connect resolves, 20 of them a second, beside 300 devices, with all
 *                                  processes on one core
 *
 * The peer `against` is another checkout with its own build, in turns, without the busy case.
 */
import { createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Figures } from './figures.ts';
import type { Connected, Connects, Target } from './processes/connect-client.ts';
import { type Child, program, type Start, withChildren, withDirectory } from './processes/parent.ts';
import { percentile, type Report } from './report.ts';
import { fromRoot } from './root.ts';

const OURS = 'ours';
const ROUNDS = 5;
const QUICK_ROUNDS = 2;
/** Rounds that are not counted: V8 compiles for some four hundred connects. */
const WARM_UP = 4;
/** Connects of a round. */
const CONNECTS = 100;
const DIRECT_CONNECTS = 30;
const ATTACHES = 30;
/** ms between two connects beside another checkout: an old one has slots for 64 connections, closed ones among them. */
const LONG_REST = 100;
/** ms until a connection must be direct; ms for which one of another checkout is held, which may stay relayed. */
const DIRECT_WITHIN = 3_000;
const HELD = 300;
/** Handshakes of the peer in a round. */
const HANDSHAKES = 300;
/** ms in which an idle device is watched, after a pause until its start is over. */
const WATCHED = 10_000;
const SETTLE = 12_000;
const QUICK_WATCHED = 4_000;
const QUICK_SETTLE = 4_000;
const MINUTE = 60_000;
/** Devices, connects a second and connects of the busy case. */
const FLEET = 300;
const RATE = 20;
const BUSY = 300;
const QUICK_BUSY = 100;

const ON_ONE_CORE = ['taskset', '--cpu-list', '0'];

interface Rig {
  readonly name: string;
  readonly station: Child;
  readonly devices: Child;
  readonly client: Child;
  readonly address: Target['station'];
  readonly targets: readonly Target[];
}

interface ConnectOptions {
  /** Root of another checkout, with its build. */
  readonly against?: string;
  readonly quick?: boolean;
}

export async function run(progress: (step: string) => void, { against, quick = false }: ConnectOptions): Promise<Report> {
  if (against !== undefined && !existsSync(join(against, 'dist/client/node.js')))
    throw new Error(`${against} has no build: run npm ci there`);
  const roots = { [OURS]: fromRoot('.'), ...(against !== undefined && { against }) };
  const figures = new Figures();
  const extent = {
    rounds: WARM_UP + (quick ? QUICK_ROUNDS : ROUNDS),
    rest: against === undefined ? 0 : LONG_REST,
    settle: quick ? QUICK_SETTLE : SETTLE,
    watched: quick ? QUICK_WATCHED : WATCHED,
  };
  await eachRig(roots, 1, (rigs) => measure(rigs, extent, figures, progress));
  progress(`${FLEET} devices on one core`);
  await eachRig({ [OURS]: roots[OURS] }, FLEET, async ([rig]) =>
    figures.add('busy-connect-p50', OURS, await busy(rig!, quick ? QUICK_BUSY : BUSY)),
  );
  const goals = Object.entries({ client: 16, device: 12, station: 12, 'client-direct': 45, 'device-direct': 35, attach: 25 });
  const times = ['client', 'device', 'station', 'client-direct', 'device-direct', 'connect-p50', 'attach', 'device-start', 'idle-device'];
  return {
    bench: 'connect',
    about: 'processor time of a relayed connect and of an attach at each party, beside the X25519 work of one side of a handshake.',
    rows: [...times, 'busy-connect-p50'].map((name) => figures.row(name, 'ms', 'lower')),
    goals: [...goals.map(([name, atMost]) => ({ case: name, peer: 'dh', atMost })), { case: 'busy-connect-p50', atMost: 30 }],
  };
}

/** Runs `work` with the processes of each checkout: a base station, its attached devices, and a client. */
function eachRig(roots: Record<string, string>, devices: number, work: (rigs: readonly Rig[]) => Promise<void>): Promise<void> {
  return withDirectory((directory) =>
    withChildren(async (start) => {
      const rigs: Rig[] = [];
      for (const [name, root] of Object.entries(roots)) rigs.push(await openRig(start, name, root, join(directory, name), devices));
      await work(rigs);
    }),
  );
}

async function openRig(start: Start, name: string, root: string, data: string, count: number): Promise<Rig> {
  // A fleet shares one core with all other processes.
  const command = count === 1 ? {} : { command: [...ON_ONE_CORE, process.execPath] };
  const begin = (script: string): Child => start({ ...program(script, root), ...command });
  const [station, devices, client] = [begin('connect-station'), begin('connect-devices'), begin('connect-client')];
  // One device more than attached ones: that of the attaches.
  const identities = await devices.call<object>('identities', { count: count + 1 });
  const address = await station.call<Target['station']>('start', { data, ...identities });
  const targets = await devices.call<Target[]>('start', { station: address, first: 0, count });
  return { name, station, devices, client, address, targets };
}

interface Extent {
  /** With those that are not counted. */
  readonly rounds: number;
  /** ms between two connects. */
  readonly rest: number;
  /** ms of the idle device: before it is watched, and in which it is. */
  readonly settle: number;
  readonly watched: number;
}

async function measure(
  rigs: readonly Rig[],
  { rounds, rest, settle, watched }: Extent,
  figures: Figures,
  progress: (step: string) => void,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1} of ${rounds}`);
    const dh = round < WARM_UP ? null : handshakeTime();
    for (const rig of rigs) {
      const measured = { ...(await connects(rig, rest)), ...(await attaches(rig)) };
      if (dh === null) continue;
      for (const [figure, value] of Object.entries(measured)) {
        figures.add(figure, rig.name, value);
        if (figure !== 'connect-p50') figures.add(figure, 'dh', dh);
      }
    }
  }
  progress('an idle device');
  // A host lists its interfaces each second while all that it speaks to is on loopback, as no device in use does.
  await Promise.all(rigs.map(({ devices, address }) => devices.call('moveOutward', { station: address })));
  await pause(settle);
  const idle = await Promise.all(rigs.map(({ devices }) => devices.used(() => pause(watched))));
  for (const [index, { used }] of idle.entries()) figures.add('idle-device', rigs[index]!.name, (used * MINUTE) / watched);
}

/** Measures connects that are closed at once, and others that are closed once they are direct. */
async function connects({ name, client, devices, station, targets }: Rig, rest: number): Promise<Record<string, number>> {
  const run = async (what: Omit<Connects, 'targets'>) => {
    const ask = () => client.call<Connected[]>('connects', { targets, ...what });
    const ofClient = () => client.used(ask);
    const ofDevice = () => devices.used(ofClient);
    const { used, result } = await station.used(ofDevice);
    const each = { station: used, device: result.used, client: result.result.used };
    return { connections: result.result.result, ...each };
  };
  const relayed = await run({ count: CONNECTS, rest });
  const direct = await run({ count: DIRECT_CONNECTS, rest, directWithin: name === OURS ? DIRECT_WITHIN : HELD });
  const late = direct.connections.filter(({ isDirect }) => !isDirect).length;
  if (late > 0 && name === OURS) throw new Error(`${late} of ${DIRECT_CONNECTS} connections did not become direct`);
  return {
    client: relayed.client / CONNECTS,
    device: relayed.device / CONNECTS,
    station: relayed.station / CONNECTS,
    'client-direct': direct.client / DIRECT_CONNECTS,
    'device-direct': direct.device / DIRECT_CONNECTS,
    'connect-p50': timeOf(relayed.connections),
  };
}

async function attaches({ devices, station, address }: Rig): Promise<Record<string, number>> {
  const ofDevice = () => devices.used(() => devices.call('attachments', { station: address, index: 1, count: ATTACHES }));
  const { used, result } = await station.used(ofDevice);
  return { attach: used / ATTACHES, 'device-start': result.used / ATTACHES };
}

/** Returns the median time of a connect beside a fleet of attached devices, ms. */
async function busy({ client, targets }: Rig, count: number): Promise<number> {
  await client.call('connects', { targets, count: RATE });
  return timeOf(await client.call<Connected[]>('connects', { targets, count, rate: RATE }));
}

function timeOf(connections: readonly Connected[]): number {
  return percentile(
    connections.map(({ time }) => time),
    50,
  );
}

/** Returns the ms of a new key and three shared secrets. */
function handshakeTime(): number {
  const remote = createPublicKey(newKey());
  const begun = process.cpuUsage();
  for (let index = 0; index < HANDSHAKES; index++) {
    const privateKey = newKey();
    for (let secret = 0; secret < 3; secret++) diffieHellman({ privateKey, publicKey: remote });
  }
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1000 / HANDSHAKES;
}

function newKey(): KeyObject {
  return generateKeyPairSync('x25519').privateKey;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
