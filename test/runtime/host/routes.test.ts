/** Routes that end at a host: interned, bound to their channel, discarded. */
import { describe, expect, test } from 'vitest';
import type { Path } from '../../../protocol/path.ts';
import { Routes } from '../../../runtime/host/routes.ts';
import type { Session } from '../../../runtime/session/index.ts';

const channel = {
  validatedPath: { kind: 'udp', key: 'udp:0:10.0.0.1:4433', address: '10.0.0.1', port: 4433, socket: 0, local: false },
} as Session;

function id(number: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setUint32(0, number);
  return bytes;
}

describe('routes', () => {
  test('promise no larger packets than Ethernet carries, since their far side is unknown', () => {
    const ceiling = (maxUdpPayload?: number) => {
      const path = { ...channel.validatedPath, ...(maxUdpPayload === undefined ? {} : { maxUdpPayload }) };
      return new Routes().add({ validatedPath: path } as Session, id(1), {}, 0).path.maxUdpPayload;
    };
    expect([ceiling(), ceiling(65_000), ceiling(1252)]).toEqual([1452, 1452, 1252]);
  });

  test('are where their channel is, and stay the same paths', () => {
    const moving = { validatedPath: channel.validatedPath };
    const routes = new Routes();
    const { path } = routes.add(moving as Session, id(1), {}, 0);
    const { key } = path;
    moving.validatedPath = { ...channel.validatedPath, key: 'elsewhere', address: '10.0.0.2', port: 5, socket: 1 };
    expect(path).toMatchObject({ kind: 'route', key, address: '10.0.0.2', port: 5, socket: 1, local: false });
    expect(routes.add(moving as Session, id(1), {}, 0).path).toBe(path);
    expect([routes.find(path)?.path, routes.size]).toEqual([path, 1]);
  });

  test('that are no longer used are released, once, while their channel is open', () => {
    const routes = new Routes();
    const given: string[] = [];
    const open = { ...channel, isOpen: true } as Session;
    const add = (name: string, over: Session, number: number) => routes.add(over, id(number), { onUnused: () => given.push(name) }, 0).path;
    const [first, second, late] = [add('first', open, 1), add('second', open, 2), add('late', { ...channel, isOpen: false } as Session, 3)];
    routes.unused(first);
    routes.unused(first);
    routes.unused(late);
    expect([given, routes.size]).toEqual([['first'], 1]);
    routes.prune(() => false, 120_001);
    expect([given, routes.find(second)]).toEqual([['first', 'second'], undefined]);
  });

  test('that are not used are discarded after two minutes', () => {
    const routes = new Routes();
    const used = routes.add(channel, id(1), {}, 0).path;
    const idle = routes.add(channel, id(2), {}, 0).path;
    routes.prune((path) => path === used, 120_001);
    expect([routes.find(used)?.path, routes.find(idle)]).toEqual([used, undefined]);
  });

  test('of a base station that offers them without end stay bounded; those in use stay', { tags: ['slow'] }, () => {
    const routes = new Routes();
    const used = new Set<Path>();
    for (let i = 0; i < 4_000; i++) {
      routes.prune((path) => used.has(path), i);
      const { path } = routes.add(channel, id(i), {}, i);
      if (i % 500 === 0) used.add(path);
    }
    expect(routes.size).toBeLessThanOrEqual(1024);
    for (const path of used) expect(routes.find(path)?.path).toBe(path);
  });
});
