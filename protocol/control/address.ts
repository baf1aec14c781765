/** Addresses in control messages: `{Ip: text, Port: uint}`, the address numeric as sockets print it. */

import { type CborMap, text, uint } from '../cbor/index.ts';
import { RemoteError } from '../errors/index.ts';

/** A UDP address. */
export interface SocketAddress {
  /** Numeric IPv4 or IPv6. */
  readonly address: string;
  readonly port: number;
}

/** Longest form of an IPv6 address: eight groups, the last two as IPv4. */
const MAX_ADDRESS = 45;

export function addressMap({ address, port }: SocketAddress): { Ip: string; Port: number } {
  return { Ip: address, Port: port };
}

/** @throws RemoteError PARSE */
export function readAddress(from: CborMap): SocketAddress {
  const address = text(from, 'Ip', { min: 2, max: MAX_ADDRESS });
  if (!/^[0-9a-fA-F:.]+$/.test(address)) throw new RemoteError('PARSE', 'Ip is not a numeric address');
  return { address, port: uint(from, 'Port', { min: 1, max: 0xffff }) };
}
