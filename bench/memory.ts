/**
 * Memory of idle connections and devices.
 *
 * Touched: lines of 64 bytes of linear memory that differ from before. The connections have exchanged a message each
 * way, and everything is acknowledged.
 *
 * Resident: two processes, one with a listening socket, one that connects to it a thousand times. Each connection has
 * carried a request and its answer, and has then been idle. The figure is the growth of either process's resident set
 * for the next thousand, as a median of several, since V8 takes and returns memory in pieces of megabytes. The
 * processes run with a young generation of 1 MB, collect before each sample and compact the heap. So garbage and the
 * space that it left do not count; linear memory, objects and buffers do.
 *
 *   idle-connection                                bytes of linear memory touched
 *   idle-resident-listens, idle-resident-connects  bytes by which either process grows per connection
 *   idle-device, idle-device-iam                   resident MB of an idle attached device over bare Node, without and
 *                                                  with access control
 */
import { Core, type CoreConnection, EventKind } from '../bindings/index.ts';
import { defaultParameters } from '../runtime/host/defaults.ts';
import { type Child, program, withChildren, withDirectory } from './processes/parent.ts';
import { attach } from './processes/stage.ts';
import { type Report, type Row, spread } from './report.ts';

const CONNECTIONS = 1000;
const LINE = 64;
/**
 * Pause before each sample of an attached device, ms, and the number of samples; the last one counts. Each sample runs
 * a collection. V8 frees the memory that it needed for loading once little is allocated between two collections.
 */
const SETTLE = 3000;
const LOOKS = 3;
const QUICK_LOOKS = 1;
const ROUNDS = 3;
const QUICK_ROUNDS = 1;
/** Resident: counted thousands, after one that is not. */
const THOUSANDS = 4;
const QUICK_THOUSANDS = 1;
/** ms until an idle connection has freed the memory that it needed in use. */
const REST = 11_000;

export async function run(progress: (step: string) => void, { quick = false }: { readonly quick?: boolean }): Promise<Report> {
  const rounds = quick ? QUICK_ROUNDS : ROUNDS;
  progress('idle connections, linear memory');
  const connection = spread([touchedPerConnection()]);
  const resident = await residentPerConnection(quick ? QUICK_THOUSANDS : THOUSANDS, progress);
  const [device, underIam]: [number[], number[]] = [[], []];
  for (let round = 1; round <= rounds; round++) {
    progress(`idle device, round ${round} of ${rounds}`);
    device.push(await residentOverBareNode(false, quick));
    underIam.push(await residentOverBareNode(true, quick));
  }
  const rows: Row[] = [
    { case: 'idle-connection', unit: 'bytes', better: 'lower', ours: connection, peers: {} },
    { case: 'idle-resident-listens', unit: 'bytes', better: 'lower', ours: spread(resident.far), peers: {} },
    { case: 'idle-resident-connects', unit: 'bytes', better: 'lower', ours: spread(resident.near), peers: {} },
    { case: 'idle-device', unit: 'MB', better: 'lower', ours: spread(device), peers: {} },
    { case: 'idle-device-iam', unit: 'MB', better: 'lower', ours: spread(underIam), peers: {} },
  ];
  return {
    bench: 'memory',
    about:
      'an idle connection: linear memory touched, and resident memory at either end; an idle attached device over bare Node, without and with access control.',
    rows,
    goals: [
      { case: 'idle-connection', atMost: 1536 },
      { case: 'idle-resident-listens', atMost: 4096 },
      { case: 'idle-resident-connects', atMost: 4096 },
      { case: 'idle-device', atMost: 25 },
      { case: 'idle-device-iam', atMost: 25 },
    ],
  };
}

/**
 * Returns the bytes that one connection touches: many initiators in one core, each with a responder in another core.
 */
function touchedPerConnection(): number {
  const near = Core.create({ connections: CONNECTIONS });
  const far = Core.create({ connections: CONNECTIONS });
  // The first connection allocates what all share.
  exchange(near, far, 0);
  const before = near.buffer.slice();
  for (let index = 1; index < CONNECTIONS; index++) exchange(near, far, index);
  const after = near.buffer;
  let lines = 0;
  for (let at = 0; at < after.length; at += LINE) {
    if (Buffer.compare(before.subarray(at, at + LINE), after.subarray(at, at + LINE)) !== 0) lines++;
  }
  return (lines * LINE) / (CONNECTIONS - 1);
}

function exchange(near: Core, far: Core, index: number): void {
  const keys = { a: bytes(32, index), b: bytes(32, index + 1), c: bytes(32, index + 2), d: bytes(32, index + 3) };
  const [left, right] = [id(2 * index), id(2 * index + 1)];
  const common = { local: defaultParameters, remote: defaultParameters, skipSeed: index, challengeSeed: new Uint8Array(32), now: 0 };
  const initiator = near.open({
    ...{ initiator: true, sendKey: keys.a, receiveKey: keys.b, sendMaskKey: keys.c, receiveMaskKey: keys.d },
    ...{ localId: left, remoteId: right, ...common },
  });
  const responder = far.open({
    ...{ initiator: false, sendKey: keys.b, receiveKey: keys.a, sendMaskKey: keys.d, receiveMaskKey: keys.c },
    ...{ localId: right, remoteId: left, ...common },
  });
  initiator.messages.send(new Uint8Array(64).fill(1));
  responder.messages.send(new Uint8Array(64).fill(2));
  for (let now = 0; now < 200; now += 10) {
    carry(near, initiator, responder, now);
    carry(far, responder, initiator, now);
    take(initiator);
    take(responder);
  }
}

function carry(core: Core, from: CoreConnection, to: CoreConnection, now: number): void {
  if (from.nextTimeout() <= now) from.handleTimeout(now);
  for (let count = from.transmit(now); count > 0; count = from.transmit(now)) {
    for (let index = 0; index < count; index++) {
      const offset = core.packetOffsets[index] ?? 0;
      to.receive(core.buffer.slice(offset, offset + (core.packetLengths[index] ?? 0)), 0, now);
      core.release(offset);
    }
  }
}

function take(connection: CoreConnection): void {
  for (let kind = connection.nextEvent(); kind !== 0; kind = connection.nextEvent()) {
    if (kind === EventKind.MESSAGE) connection.messages.read(connection.eventStream);
  }
}

/** Returns the bytes by which each end grows per connection, for each thousand. */
function residentPerConnection(thousands: number, progress: (step: string) => void): Promise<{ far: number[]; near: number[] }> {
  const idle = { ...program('idle'), command: [process.execPath, '--expose-gc', '--max-semi-space-size=1', '--compact-on-every-full-gc'] };
  return withChildren(async (start) => {
    const [far, near] = [start(idle), start(idle)];
    const connections = (1 + thousands) * CONNECTIONS;
    const address = await far.call('listen', { connections });
    const growth = { far: [] as number[], near: [] as number[] };
    let before = { far: 0, near: 0 };
    for (let thousand = 0; thousand <= thousands; thousand++) {
      progress(`idle connections, resident, ${thousand + 1} of ${thousands + 1} thousand`);
      await near.call('connect', { address, count: CONNECTIONS, connections });
      await new Promise((resolve) => setTimeout(resolve, REST));
      const after = { far: await resident(far), near: await resident(near) };
      if (thousand > 0) for (const end of ['far', 'near'] as const) growth[end].push((after[end] - before[end]) / CONNECTIONS);
      before = after;
    }
    return growth;
  });
}

function residentOverBareNode(iam: boolean, quick: boolean): Promise<number> {
  return withChildren((start) =>
    withDirectory(async (data) => {
      const [station, device, bare] = [start('station'), start('device'), start('bare-node')];
      await attach(station, device, data, { iam });
      let over = 0;
      for (let look = 1; look <= (quick ? QUICK_LOOKS : LOOKS); look++) {
        await new Promise((resolve) => setTimeout(resolve, SETTLE));
        over = (await resident(device)) - (await resident(bare));
      }
      return over / 1e6;
    }),
  );
}

function resident(child: Child): Promise<number> {
  return child.call<number>('resident');
}

function id(value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setUint32(0, value + 1);
  return bytes;
}

function bytes(length: number, seed: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => (seed * 31 + index * 7) & 0xff);
}
