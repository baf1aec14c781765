/** Addresses in control messages: `{Ip: byte string of 4 or 16, Port: uint}` (PROTOCOL.md §7). */
import { formatAddress, parseAddress, type SocketAddress } from '../address.ts';
import { bytes, type CborMap, decode, encode, map, mapField, uint } from '../cbor/index.ts';
import { LocalError, RemoteError } from '../errors/index.ts';

export type { SocketAddress } from '../address.ts';

/** Omits a zone of the address: it has meaning only at this end. @throws LocalError INVALID_ARGUMENT for a name */
export function addressMap({ address, port }: SocketAddress): { Ip: Uint8Array; Port: number } {
  const ip = parseAddress(address);
  if (ip === null) throw new LocalError('INVALID_ARGUMENT', `${address} is not a numeric address`);
  return { Ip: ip, Port: port };
}

/** Returns the address in its canonical text. @throws RemoteError PARSE */
export function readAddress(from: CborMap): SocketAddress {
  const ip = bytes(from, 'Ip', { min: 4, max: 16 });
  if (ip.length !== 4 && ip.length !== 16) throw new RemoteError('PARSE', 'Ip does not have 4 or 16 bytes');
  return { address: formatAddress(ip), port: uint(from, 'Port', { min: 1, max: 0xffff }) };
}

/**
 * Encodes the answer to `GET /device/address` and `GET /client/address`: the address at which the base station sees the
 * requesting end.
 */
export function encodeSeenAddress(address: SocketAddress): Uint8Array {
  return encode({ Address: addressMap(address) });
}

/** @throws RemoteError PARSE */
export function decodeSeenAddress(payload: Uint8Array): SocketAddress {
  return readAddress(mapField(map(decode(payload)), 'Address'));
}
