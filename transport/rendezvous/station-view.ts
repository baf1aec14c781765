/** What an end knows of the base station behind its channel. */
import type { SocketAddress } from '../../protocol/control/index.ts';
import type { Session } from '../session/index.ts';

/** What the channel to a base station has shown. */
export interface StationView {
  /** Where the station is: numeric address, and its main port. */
  readonly at: SocketAddress;
  /** This end as the station saw it, null when it has not said. */
  readonly observed: SocketAddress | null;
  readonly stun: readonly { readonly address?: string; readonly port: number }[];
  /** Its host name, where it is known by one: it may have addresses of another family. */
  readonly name: string | null;
}

/** Of an open channel to a base station; null for none. @param name of the station's host */
export function stationView(channel: Session | null, name: string | null): StationView | null {
  if (channel === null || !channel.isOpen) return null;
  const { address, port } = channel.provenPath;
  return { at: { address, port }, observed: channel.observedAddress, stun: channel.stunServers, name };
}
