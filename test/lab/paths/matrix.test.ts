/**
 * Every kind of NAT before the client with every kind before the device, with `svc basestation`, `svc device` and
 * clients as processes: relayed at once, and then direct, or relayed with a reason. The table is printed, and copied to
 * docs/paths.md.
 *
 * Meanwhile the routers count hop limits: openers end before the other side's boxes, and no other packet has a small
 * hop limit.
 *
 * The tests run in this order and all of them: those that read cells or hop limits, and the table, need the attempts of
 * earlier tests.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { beforeAll, expect, it } from 'vitest';
import type { Child } from '../../../bench/processes/parent.ts';
import { percentile } from '../../../bench/report.ts';
import { fromRoot } from '../../../bench/root.ts';
import { CHECK_LENGTH } from '../../../protocol/stun/index.ts';
import { record } from '../figures.ts';
import { Cells, type Expectation, expectationOf } from './cells.ts';
import { countHops, hopsSeen } from './hop-counters.ts';
import type { Side } from './internet.ts';
import { NAT_KINDS, type NatKind } from './nat-boxes.ts';
import { type LabDevice, labWithProducts, type View } from './products.ts';

/** ms in which a cell has to become direct; an attempt that fails ends earlier. */
const LIMIT = 15_000;
const RELAY_LIMIT = 30_000;
/** A device takes part in three rounds of known clients at a time. */
const AT_A_TIME = 3;
/** Smaller hop limits belong to openers: hosts begin with 64. */
const SMALL = 32;
const SIDES: readonly Side[] = ['client', 'device'];

interface Result extends View {
  /** ms since it was connected. */
  readonly took: number;
}

const PAIRS = NAT_KINDS.flatMap((client) => NAT_KINDS.map((device) => ({ client, device, expected: expectationOf(client, device) })));

// A device sprays to a client only once an hour: each has a key of its own.
labWithProducts('direct paths', { keys: NAT_KINDS.length }, (lab) => {
  const devices = new Map<NatKind, LabDevice>();
  const clients = new Map<NatKind, Child>();
  const cells = new Cells<Result>();

  beforeAll(async () => {
    const { internet, products } = lab;
    for (const side of SIDES) for (const router of internet.routers[side]) countHops(router, 'above');
    for (const kind of NAT_KINDS) {
      devices.set(kind, await products.device(internet.home('device', kind).host, `de-${kind}`, '--no-mdns'));
      clients.set(kind, products.client(internet.home('client', kind).host));
    }
  });

  async function attempt(client: NatKind, device: NatKind): Promise<Result> {
    const child = clients.get(client)!;
    const name = `${client}-${device}`;
    const { pem } = lab.products.keys[NAT_KINDS.indexOf(client)]!;
    const begun = await child.call<View>('connect', { name, options: { ...devices.get(device)!.options, PrivateKey: pem } });
    expect(begun.type, name).toBe('RELAY');
    const isRelay = expectationOf(client, device) === 'relay';
    const result = await child.call<Result>('settled', { name, limit: isRelay ? RELAY_LIMIT : LIMIT, untilDirect: !isRelay });
    await child.call('request', { name });
    await child.call('close', { name });
    cells.set(client, device, result);
    return result;
  }

  async function inTurn(expected: Expectation): Promise<Result[]> {
    const results: Result[] = [];
    for (const { client, device } of PAIRS.filter((pair) => pair.expected === expected)) results.push(await attempt(client, device));
    return results;
  }

  it('are found at once where openers and checks are enough', async () => {
    const results = await inTurn('at once');
    expect(results.filter(({ type }) => type !== 'DIRECT')).toEqual([]);
    figure('direct at once, p95, ms', results, 95, 1_000);
  });

  it('go over IPv6 where both ends have it', () => {
    expect(cells.at('v6-firewall', 'v6-firewall')).toMatchObject({ over: 'ipv6' });
    expect(cells.at('v6-firewall', 'port')).toMatchObject({ over: 'ipv4' });
  });

  it('are found by prediction where ports are sequential', async () => {
    const results = await inTurn('predict');
    expect(results.filter(({ type }) => type !== 'DIRECT')).toEqual([]);
    figure('direct by prediction, p95, ms', results, 95, 3_000);
  });

  it('are found by many sockets and many ports where one end is random', async () => {
    const results = await inTurn('guess');
    const direct = results.filter(({ type }) => type === 'DIRECT');
    // Each succeeds 98 of 100 times, so all of them together seldom do; that half of them fail is practically
    // impossible.
    expect(direct.length).toBeGreaterThan(results.length / 2);
    record('direct by many sockets, %', 'ours', (100 * direct.length) / results.length, { atLeast: 80 });
    // With eight tries the median is above 4 s every fifth time.
    figure('direct by many sockets, p50, ms', direct, 50, 8_000);
  });

  it('are not found where UDP is blocked, or neither port can be guessed, and the reason is reported', async () => {
    const pairs = PAIRS.filter(({ expected }) => expected === 'relay');
    await Promise.all(
      NAT_KINDS.map(async (kind) => {
        const ofDevice = pairs.filter(({ device }) => device === kind);
        for (let first = 0; first < ofDevice.length; first += AT_A_TIME)
          await Promise.all(ofDevice.slice(first, first + AT_A_TIME).map(({ client, device }) => attempt(client, device)));
      }),
    );
    for (const { client, device } of pairs) {
      const isBlocked = client === 'blocked' || device === 'blocked';
      const reasons = isBlocked ? /^(NO_ANSWER|UDP_BLOCKED|ONE_WAY)$/ : /^BOTH_RANDOM$/;
      const result = { type: 'RELAY', over: 'relay', why: expect.stringMatching(reasons) };
      expect(cells.at(client, device), `${client} × ${device}`).toMatchObject(result);
    }
  });

  it.each(SIDES)('%s: openers leave with 2, 4 and 7 hops, end before the other side, and no other packet has few hops', (side) => {
    const [edge, middle] = lab.internet.routers[side];
    const out = hopsSeen(edge!, 'others');
    // One router before a host takes one hop, two of them two, and there the first opener ends.
    const few = out.filter(({ hops }) => hops < SMALL);
    expect([...new Set(few.map(({ hops }) => hops))].sort()).toEqual([1, 2, 3, 5, 6]);
    expect(few.filter(({ bytes }) => bytes !== CHECK_LENGTH)).toEqual([]);
    expect(out.filter(({ hops }) => hops >= SMALL && hops !== 62 && hops !== 63)).toEqual([]);
    expect(hopsSeen(edge!, 'from').filter(({ hops }) => hops < SMALL)).toEqual([]);
    expect(hopsSeen(middle!, 'from').filter(({ hops }) => hops < SMALL && hops !== 1)).toEqual([]);
  });

  it('make a table', () => {
    const table = cells.table(shown);
    process.stdout.write(`\nms from connected to direct, client × device\n\n${table}\n\n`);
    mkdirSync(fromRoot('build/lab'), { recursive: true });
    writeFileSync(fromRoot('build/lab/paths.md'), `${table}\n`);
    expect(table.split('\n')).toHaveLength(NAT_KINDS.length + 2);
  });
});

function figure(row: string, results: readonly Result[], percent: number, atMost: number): void {
  const times = results.map(({ took }) => took);
  record(row, 'ours', percentile(times, percent), { atMost });
}

function shown(result: Result | undefined): string {
  return result?.type === 'DIRECT' ? String(Math.round(result.took)) : (result?.why ?? '–');
}
