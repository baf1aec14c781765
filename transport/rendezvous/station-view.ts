/** What an end knows of the base station behind its channel. */
import type { SocketAddress } from '../../protocol/control/index.ts';
import type { Session } from '../session/index.ts';

/** What the channel to a base station has shown. */
export interface StationView {
  /** Where the station is: numeric address, and its main port. */
  readonly at: SocketAddress;
  /** This end as the station saw it when it last said so, null when it has not. */
  readonly observed: SocketAddress | null;
  /** This end as the station sees it now: a NAT may have given the channel another address since. Null where it does not say. */
  ask(): Promise<SocketAddress | null>;
  readonly stun: readonly { readonly address?: string; readonly port: number }[];
  /** UDP to it is silent: the channel goes over a WebSocket, perhaps through a proxy, which is then at `at`. Nothing is known of a UDP address of this end. */
  readonly webSocket?: { readonly proxy: string | null };
  /** Its host name, where it is known by one: it may have addresses of another family. */
  readonly name: string | null;
}

/** Asks the station at the other end of a channel where it sees this end. */
export type AskAddress = (channel: Session) => Promise<SocketAddress | null>;

/** Of an open channel to a base station; null for none. @param name of the station's host */
export function stationView(channel: Session | null, name: string | null, ask: AskAddress): StationView | null {
  if (channel === null || !channel.isOpen) return null;
  const { address, port, kind, proxy = null } = channel.validatedPath;
  if (kind === 'websocket') return { at: { address, port }, observed: null, stun: [], name, ask: nobody, webSocket: { proxy } };
  return { at: { address, port }, observed: channel.observedAddress, stun: channel.stunServers, name, ask: () => ask(channel) };
}

/** What the station sees of a WebSocket is an address of TCP. */
async function nobody(): Promise<null> {
  return null;
}
