/** Where the peer of a path is, as logs show it: an address that can be pasted, without the numbers of our sockets. */
import { expect, test } from 'vitest';
import { type Path, placeOfPeer } from '../../protocol/path.ts';

test.each<[Path['kind'], string, number, string]>([
  ['udp', '10.9.2.2', 5593, '10.9.2.2:5593'],
  ['udp', 'fe80::1%eth0', 5593, '[fe80::1%eth0]:5593'],
  ['websocket', '10.9.2.2', 443, 'websocket 10.9.2.2:443'],
  ['websocket', '', 0, 'websocket'],
  ['route', '198.51.100.1', 4433, 'route 198.51.100.1:4433'],
])('of %s to %s, port %d: %s', (kind, address, port, text) => {
  expect(placeOfPeer({ kind, address, port })).toBe(text);
});
