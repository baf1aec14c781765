/** Routes that end at a host: interned, bound to their channel, discarded. */
import { describe, expect, test } from 'vitest';
import type { Endpoint } from '../../../protocol/endpoint/index.ts';
import type { Path } from '../../../protocol/path.ts';
import { Routes } from '../../../runtime/host/routes.ts';
import type { Session } from '../../../runtime/session/index.ts';

const STATION: Path = { kind: 'udp', key: 'udp:0:10.0.0.1:4433', address: '10.0.0.1', port: 4433, socket: 0, local: false };

function channelOn(validatedPath: Path, isOpen = true): Session {
  return { connection: { validatedPath }, isOpen } as unknown as Session;
}

const channel = channelOn(STATION);

/** Routes of a host whose endpoint uses the paths in `used`, at a time that the test sets. */
function routesAt(used: ReadonlySet<Path> = new Set()) {
  const clock = { time: 0, now: () => clock.time };
  const endpoint = { usesRoute: (path: Path) => used.has(path) } as Endpoint;
  return { clock, routes: new Routes({ clock, endpoint: () => endpoint, openEndpoint: () => endpoint, wake: () => {} }) };
}

function id(number: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setUint32(0, number);
  return bytes;
}

describe('routes', () => {
  test('promise no larger packets than Ethernet carries, since their far side is unknown', () => {
    const ceiling = (maxUdpPayload?: number) => {
      const path = { ...STATION, ...(maxUdpPayload === undefined ? {} : { maxUdpPayload }) };
      return routesAt().routes.path(channelOn(path), id(1)).maxUdpPayload;
    };
    expect([ceiling(), ceiling(65_000), ceiling(1252)]).toEqual([1452, 1452, 1252]);
  });

  test('are where their channel is, and stay the same paths', () => {
    const connection = { validatedPath: STATION };
    const moving = { connection } as unknown as Session;
    const { routes } = routesAt();
    const path = routes.path(moving, id(1));
    const { key } = path;
    connection.validatedPath = { ...STATION, key: 'elsewhere', address: '10.0.0.2', port: 5, socket: 1 };
    expect(path).toMatchObject({ kind: 'route', key, address: '10.0.0.2', port: 5, socket: 1, local: false });
    expect(routes.path(moving, id(1))).toBe(path);
    expect([routes.channelOf(path), routes.size]).toEqual([moving, 1]);
  });

  test('that are no longer used are released, once, while their channel is open', () => {
    const { clock, routes } = routesAt();
    const given: string[] = [];
    const add = (name: string, over: Session, number: number) => routes.path(over, id(number), { onUnused: () => given.push(name) });
    const [first, second, late] = [add('first', channel, 1), add('second', channel, 2), add('late', channelOn(STATION, false), 3)];
    routes.unused(first);
    routes.unused(first);
    routes.unused(late);
    expect([given, routes.size]).toEqual([['first'], 1]);
    clock.time = 120_001;
    routes.path(channel, id(4));
    expect([given, routes.channelOf(second)]).toEqual([['first', 'second'], undefined]);
  });

  test('that are not used are discarded after two minutes', () => {
    const inUse = new Set<Path>();
    const { clock, routes } = routesAt(inUse);
    const used = routes.path(channel, id(1));
    const idle = routes.path(channel, id(2));
    inUse.add(used);
    clock.time = 120_001;
    routes.path(channel, id(3));
    expect([routes.channelOf(used), routes.channelOf(idle)]).toEqual([channel, undefined]);
  });

  test('of a base station that offers them without end stay bounded; those in use stay', { tags: ['slow'] }, () => {
    const used = new Set<Path>();
    const { clock, routes } = routesAt(used);
    for (let i = 0; i < 4_000; i++) {
      clock.time = i;
      const path = routes.path(channel, id(i));
      if (i % 500 === 0) used.add(path);
    }
    expect(routes.size).toBeLessThanOrEqual(1024);
    for (const path of used) expect(routes.channelOf(path)).toBe(channel);
  });
});
