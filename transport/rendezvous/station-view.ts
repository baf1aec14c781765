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
  /** Its host name, where it is known by one: it may have addresses of another family. */
  readonly name: string | null;
}

/** Asks the station at the other end of a channel where it sees this end. */
export type AskAddress = (channel: Session) => Promise<SocketAddress | null>;

/** Of an open channel to a base station; null for none. @param name of the station's host */
export function stationView(channel: Session | null, name: string | null, ask: AskAddress): StationView | null {
  if (channel === null || !channel.isOpen) return null;
  const { address, port } = channel.provenPath;
  return { at: { address, port }, observed: channel.observedAddress, stun: channel.stunServers, name, ask: () => ask(channel) };
}
