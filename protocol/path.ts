/**
 * A path: one way for packets to reach a peer (PROTOCOL.md §6). The transport interns paths: the same peer address on
 * the same socket is the same object, so engines compare paths with ===.
 */

/** UDP payload that is tried on a path of unknown MTU: Ethernet's MTU of 1,500 less the headers of IPv6 and UDP. */
export const ETHERNET_PAYLOAD = 1452;

/** Returns the largest packet size that may be used on a path. */
export function packetCeiling(path: Path): number {
  return path.maxUdpPayload ?? ETHERNET_PAYLOAD;
}

/**
 * Returns where the peer of a path is, for logs and people: `10.9.2.2:5593`, IPv6 in brackets, and the kind of a path
 * other than UDP in front, alone where its peer has no address.
 */
export function placeOfPeer({ kind, address, port }: Pick<Path, 'kind' | 'address' | 'port'>): string {
  if (address === '') return kind;
  const place = `${address.includes(':') ? `[${address}]` : address}:${port}`;
  return kind === 'udp' ? place : `${kind} ${place}`;
}

/** One way to a peer. */
export interface Path {
  readonly kind: 'udp' | 'websocket' | 'datachannel' | 'route';
  /** Unique, e.g. "udp:2:127.0.0.1:4433" or "route:<16 hex>@<key of the channel>"; people read `placeOfPeer`. */
  readonly key: string;
  /**
   * Numeric IP address; for a route, that of the channel. Empty, with port 0, where the peer of a websocket or
   * datachannel has none.
   */
  readonly address: string;
  readonly port: number;
  /** Index of the driver's local socket. */
  readonly socket: number;
  /**
   * Largest UDP payload that may be tried on it, as far as the host knows: docs/transport.md §5. Default
   * `ETHERNET_PAYLOAD`.
   */
  readonly maxUdpPayload?: number;
  /** `host:port` of the HTTP proxy in front of a WebSocket, without credentials. */
  readonly proxy?: string | null;
  /**
   * True when packets arrive on the device's local socket, from loopback, link-local or a prefix of one of our own
   * interfaces.
   */
  readonly local: boolean;
  /** 8 bytes, kind 'route' only: packets on this path carry a Route header with this id. */
  readonly route?: Uint8Array;
  /** 16 bytes that the station's Reset for this route carries, kind 'route' only. */
  readonly resetToken?: Uint8Array | undefined;
}
