/** Describes the path of a connection: at its start, and each time it changes. */
import type { Connection, PathClass, PathReport } from '../../client/node.ts';
import { formatHostPort } from '../../protocol/records/index.ts';
import type { Output } from '../frame/output.ts';

const OVER: Readonly<Record<PathClass, string>> = {
  lan: 'directly over the local network',
  ipv6: 'directly over IPv6',
  ipv4: 'directly over IPv4',
  relay: 'through the base station',
};

/** The kind of a path, in words. */
export function overText(over: PathClass): string {
  return OVER[over];
}

/** `address:port` of the peer of a path. */
export function placeOf({ address, port }: Pick<PathReport, 'address' | 'port'>): string {
  return formatHostPort({ host: address, port });
}

/** `address:port` of the device on the path in use; undefined where it is unknown. */
export function placeOfActive(connection: Connection): string | undefined {
  const active = activeOf(connection);
  return active === undefined ? undefined : placeOf(active);
}

/** Returns the current path of a connection, as a word for programs and as text. */
export function wayOf(connection: Connection): { readonly over: 'local' | 'direct' | 'relay'; readonly text: string } {
  if (connection.getType() === 'RELAY') return { over: 'relay', text: OVER.relay };
  if (connection.getLocalChannelErrorCode() === 'OK') return { over: 'local', text: 'on the local network' };
  const active = activeOf(connection);
  return { over: 'direct', text: active === undefined ? 'directly' : OVER[active.over] };
}

/** For a long-running command: shows the path of the connection, and each change, to a person at a terminal. */
export function showWay(connection: Connection, output: Output): void {
  if (!output.interactive) return;
  output.aside(`connected ${wayOf(connection).text}`);
  followWay(connection, (text) => output.aside(text));
}

/** Reports each change in one line. */
export function followWay(connection: Connection, say: (text: string) => void): void {
  let before = activeOf(connection);
  connection.on('path', () => {
    const now = activeOf(connection);
    if (now === undefined || (now.over === before?.over && placeOf(now) === placeOf(before))) return;
    before = now;
    say(now.over === 'relay' ? `now ${OVER.relay} again` : `now ${OVER[now.over]}, ${placeOf(now)}`);
  });
}

function activeOf(connection: Connection): PathReport | undefined {
  return connection.paths().paths.find(({ active }) => active);
}
