/** The paths of a connection and the indices of a core that the test plays. */
import { describe, expect, it } from 'vitest';
import type { CoreConnection } from '../../../bindings/index.ts';
import { Lifecycle } from '../../../protocol/connection/lifecycle.ts';
import type { ConnectionOwner } from '../../../protocol/connection/owner.ts';
import { ConnectionPaths } from '../../../protocol/connection/paths.ts';
import type { Path } from '../../../protocol/path.ts';

const udp: Path = { kind: 'udp', key: 'udp', address: '192.0.2.1', port: 1, socket: 0, local: false };
const route: Path = { ...udp, kind: 'route', key: 'route', route: new Uint8Array(8).fill(9) };

function paths() {
  const routed: number[] = [];
  const held: string[] = [];
  const played = {
    receivedPath: 0,
    receive: () => true,
    paths: { setRouteOf: (index: number) => void routed.push(index) },
  };
  const core = played as unknown as CoreConnection;
  const owner = {
    pathAdded: ({ key }: Path) => void held.push(`+${key}`),
    pathRemoved: ({ key }: Path) => void held.push(`-${key}`),
  };
  const life = new Lifecycle(owner as unknown as ConnectionOwner);
  life.opened(core);
  const made = new ConnectionPaths(udp, life);
  const receive = (path: Path, index: number) => {
    played.receivedPath = index;
    return made.receive(core, new Uint8Array(40), 0, path, 0);
  };
  return { made, receive, routed, held };
}

describe('paths of a connection', () => {
  it('are held once per index, and released when the index serves another path', () => {
    const { made, receive, held } = paths();
    for (let i = 0; i < 3; i++) expect(receive(route, 1)).toBe(true);
    expect([made.all, held]).toEqual([[udp, route], ['+route']]);
    const other = { ...udp, key: 'other', port: 2 };
    receive(other, 1);
    expect([made.all, held]).toEqual([
      [udp, other],
      ['+route', '+other', '-route'],
    ]);
  });

  it('report a route to the core each time: it may have forgotten the path and added it again under its old index', () => {
    const { receive, routed } = paths();
    receive(route, 2);
    receive(route, 2);
    expect(routed).toEqual([2, 2]);
  });
});
