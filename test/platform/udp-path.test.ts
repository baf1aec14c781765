/** Paths of UDP peers: interned, and discarded after a flood. */
import { expect, it } from 'vitest';
import { PathTable, packetSizeFor, UdpPath } from '../../platform/udp-path.ts';
import { collectGarbage } from '../support/garbage.ts';

it('discards the paths of a flood and keeps those in use', { tags: ['slow'] }, async () => {
  const table = new PathTable((address, port) => new UdpPath(0, address, port, null));
  const held = Array.from({ length: 100 }, (_, i) => table.path('192.0.2.1', i + 1));
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 6000; i++) table.path(`10.0.${i >> 8}.${i & 255}`, round + 1);
    // weak references live until the end of the current job
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
  }
  expect(table.size).toBeLessThan(8000);
  for (const [i, path] of held.entries()) expect(table.path('192.0.2.1', i + 1)).toBe(path);
});

it('checks nearness at each read', () => {
  let near = false;
  const path = new UdpPath(3, 'fe80::1', 7, () => near);
  expect([path.key, path.local]).toEqual(['udp:3:[fe80::1]:7', false]);
  near = true;
  expect(path.local).toBe(true);
});

it('uses the smaller headers for a host, and those of the family for a path', () => {
  const payload = (address: string, mtu?: number) => new UdpPath(0, address, 1, null, mtu).maxUdpPayload;
  expect([undefined, 1280, 9000, 65_535].map(packetSizeFor)).toEqual([1452, 1452, 8972, 65_000]);
  expect([payload('10.0.0.1', 9000), payload('2001:db8::1', 9000), payload('10.0.0.1'), payload('127.0.0.1', 9000)]).toEqual([
    8972, 8952, 1452, 65_000,
  ]);
});
