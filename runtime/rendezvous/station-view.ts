/** An end's view of the base station behind its channel. */
import type { SocketAddress } from '../../protocol/control/index.ts';
import type { Session } from '../session/index.ts';

/** The facts that the channel to a base station shows. */
export interface StationView {
  /** Numeric address of the station, and its main port. */
  readonly at: SocketAddress;
  /** This end's address as the station last reported it, null before that. */
  readonly observed: SocketAddress | null;
  /**
   * Asks for this end's address as the station sees it now: a NAT may have given the channel another one since. Null
   * without an answer.
   */
  ask(): Promise<SocketAddress | null>;
  readonly stun: readonly { readonly address?: string; readonly port: number }[];
  /**
   * UDP to the station is silent: the channel uses a WebSocket, perhaps through a proxy, which is then at `at`. This
   * end's UDP address is unknown.
   */
  readonly webSocket?: { readonly proxy: string | null };
  /** Host name of the station, where known: it may have addresses of another family. */
  readonly name: string | null;
}

/** Asks the station that is the peer of a channel for this end's address. */
export type AskAddress = (channel: Session) => Promise<SocketAddress | null>;

/** Returns the view of an open channel to a base station; null without one. @param name of the station's host */
export function stationView(channel: Session | null, name: string | null, ask: AskAddress): StationView | null {
  if (channel === null || !channel.isOpen) return null;
  const { address, port, kind, proxy = null } = channel.paths.validated;
  if (kind === 'websocket') return { at: { address, port }, observed: null, stun: [], name, ask: noAddress, webSocket: { proxy } };
  return { at: { address, port }, observed: channel.observedAddress, stun: channel.stunServers, name, ask: () => ask(channel) };
}

/** The station sees only the TCP address of a WebSocket. */
async function noAddress(): Promise<null> {
  return null;
}
