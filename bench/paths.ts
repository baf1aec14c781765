/**
 * The cost of a check of a direct path at its receiver, beside one bare HMAC-SHA-256 of the same bytes with the same
 * crypto. A receiver pays it for every datagram of a stranger that names a known tag.
 *
 *   check-verify  finds the tag, then verifies
 *   check-answer  the same, and encodes the answer
 *
 * The cost of the 256 sockets of a sprayed stage, beside as many bare ones of `node:dgram` in the same run, in separate
 * processes. Only the first opening in a process counts for the memory, since later ones reuse it.
 *
 *   sockets-256         opened and bound
 *   sockets-256-memory  growth of the process while they are open
 *
 * The relay of a base station for clients and devices that UDP does not reach, beside a process that uses the library
 * alone:
 *
 *   ws-relay-1200  packets of 1,200 bytes of a route from one WebSocket to another, 32 under way
 *   ws-resident    growth of the process for each WebSocket with an idle session
 *
 * The rates that other peers of a base station keep beside strangers on WebSockets: `strangers.ts`.
 */

import { nodeCrypto } from '../platform/node/crypto.ts';
import { encodeCheck, encodeCheckAnswer, tagOfCheck, verifyCheck } from '../protocol/stun/index.ts';
import { type Child, withChildren } from './processes/parent.ts';
import { type Report, type Row, spread } from './report.ts';
import { type Contender, operationsPerSecond } from './rounds.ts';
import { strangersGoals, strangersRows } from './strangers.ts';

/** Bytes that the integrity of a check covers. */
const COVERED = 56;
const SOURCE = { address: '192.0.2.1', port: 50_000 };
const BARE = 'bare HMAC';
const SOCKETS = 256;
const BARE_SOCKETS = 'bare dgram';
/** Pairs of processes, and openings in each. */
const PROCESSES = 5;
const OPENINGS = 5;
const BARE_RELAY = 'bare ws';
/** Packets of a round; counted rounds, after one that is not. */
const RELAYED = 50_000;
const RELAY_ROUNDS = 7;
const RELAYED_SIZE = 1_200;
/** Counted WebSockets, after some that are not, and ms until they have freed the memory that they needed in use. */
const IDLE = 6_000;
const IDLE_BEFORE = 500;
const IDLE_REST = 12_000;

export async function run(progress: (step: string) => void): Promise<Report> {
  const crypto = nodeCrypto;
  const key = crypto.randomBytes(16);
  const check = encodeCheck(crypto.randomBytes(8), key, crypto.randomBytes(12), crypto);
  const covered = check.slice(0, COVERED);
  const verify = (): void => {
    if (tagOfCheck(check) === null || !verifyCheck(check, key, crypto)) throw new Error('a valid check was refused');
  };
  const answer = (): void => {
    verify();
    encodeCheckAnswer(check, SOURCE, key, crypto);
  };
  const bare: Contender = { name: BARE, run: () => crypto.hmacSha256(key, covered) };
  const checks = [row('check-verify', verify, bare, progress), row('check-answer', answer, bare, progress)];
  const rows = [...checks, ...(await socketRows(progress)), ...(await webSocketRows(progress)), ...(await strangersRows(progress))];
  const goals = [
    { case: 'check-verify', peer: BARE, atMost: 2 },
    { case: 'check-answer', peer: BARE, atMost: 4 },
    { case: 'sockets-256', atMost: 95 },
    { case: 'sockets-256-memory', atMost: 10 },
    { case: 'ws-relay-1200', peer: BARE_RELAY, atLeast: 0.6 },
    { case: 'ws-resident', atMost: 20 },
    ...strangersGoals,
  ];
  return {
    bench: 'paths',
    about:
      'processor time of the checks by which two ends find a direct path, the sockets of a sprayed stage, and WebSockets at a base station.',
    rows,
    goals,
  };
}

function row(name: string, run: () => void, bare: Contender, progress: (step: string) => void): Row {
  progress(name);
  const { ours, ...peers } = operationsPerSecond([{ name: 'ours', run }, bare]);
  if (ours === undefined) throw new Error('our own figure is missing');
  const micros = ({ median, min, max }: typeof ours) => ({ median: 1e6 / median, min: 1e6 / max, max: 1e6 / min });
  return {
    case: name,
    unit: 'µs',
    better: 'lower',
    ours: micros(ours),
    peers: Object.fromEntries(Object.entries(peers).map(([peer, figure]) => [peer, micros(figure)])),
  };
}

interface Opening {
  readonly time: number;
  readonly bytes: number;
}

async function socketRows(progress: (step: string) => void): Promise<readonly Row[]> {
  const [times, bytes] = [
    { ours: [] as number[], bare: [] as number[] },
    { ours: [] as number[], bare: [] as number[] },
  ];
  for (let process = 1; process <= PROCESSES; process++) {
    progress(`${SOCKETS} sockets, process ${process} of ${PROCESSES}`);
    await withChildren(async (start) => {
      const children: readonly ['ours' | 'bare', Child][] = [
        ['ours', start('sockets')],
        ['bare', start('sockets')],
      ];
      for (let opening = 1; opening <= OPENINGS; opening++)
        for (const [kind, child] of children) {
          const opened = await child.call<Opening>(kind, { count: SOCKETS });
          times[kind].push(opened.time);
          if (opening === 1) bytes[kind].push(opened.bytes / 1e6);
        }
    });
  }
  const rowOf = (name: string, unit: string, { ours, bare }: typeof times): Row => ({
    ...{ case: name, unit, better: 'lower' as const },
    ...{ ours: spread(ours), peers: { [BARE_SOCKETS]: spread(bare) } },
  });
  return [rowOf('sockets-256', 'ms', times), rowOf('sockets-256-memory', 'MB', bytes)];
}

interface RelayAddress {
  readonly port: number;
  readonly fingerprint?: string;
}

async function webSocketRows(progress: (step: string) => void): Promise<readonly Row[]> {
  const [ours, bare] = [[] as number[], [] as number[]];
  progress('relay between WebSockets');
  await withChildren(async (start) => {
    const sides = [
      { figures: ours, id: await openRoute(start('ws-relay'), start('ws-ends'), 'ours') },
      { figures: bare, id: await openRoute(start('ws-relay'), start('ws-ends'), 'bare') },
    ];
    for (let round = 0; round <= RELAY_ROUNDS; round++)
      for (const { figures, id } of sides) {
        const time = await id.ends.call<number>('run', { count: RELAYED, ...(id.route && { id: id.route }) });
        if (round > 0) figures.push((RELAYED * RELAYED_SIZE) / 1e3 / time);
      }
  });
  const relay: Row = { case: 'ws-relay-1200', unit: 'MB/s', better: 'higher', ours: spread(ours), peers: { [BARE_RELAY]: spread(bare) } };
  progress(`${IDLE} idle WebSockets`);
  return [relay, { case: 'ws-resident', unit: 'KB', better: 'lower', ours: spread([await residentPerWebSocket()]), peers: {} }];
}

async function openRoute(relay: Child, ends: Child, kind: 'ours' | 'bare') {
  await ends.call('open', await relay.call<RelayAddress>(kind));
  return { ends, route: kind === 'ours' ? await relay.call<number[]>('route') : undefined };
}

function residentPerWebSocket(): Promise<number> {
  return withChildren(async (start) => {
    const [relay, ends] = [start('ws-relay'), start('ws-ends')];
    const address = await relay.call<RelayAddress>('ours');
    const after = async (count: number): Promise<number> => {
      await ends.call('idle', { address, count });
      await new Promise((resolve) => setTimeout(resolve, IDLE_REST));
      return relay.call<number>('resident');
    };
    const before = await after(IDLE_BEFORE);
    return ((await after(IDLE)) - before) / IDLE / 1e3;
  });
}
