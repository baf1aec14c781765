/**
 * STUN servers of a base station in its answers to attach and connect: `Stun: [{Ip?, Port, ResponsePort?}]`, at most
 * two.
 */

import { type CborMap, type CborValue, map, optionalArrayField, optionalBool, uint } from '../cbor/index.ts';
import { addressMap, readAddress } from './address.ts';

/** An address at which a base station answers plain Binding (protocol/stun/). */
export interface StunServer {
  /** Numeric; absent: the address at which the base station itself was reached. */
  readonly address?: string;
  readonly port: number;
  /** Whether it supports RESPONSE-PORT (RFC 5780 §7.5). */
  readonly responsePort?: boolean;
}

/**
 * One on a port other than the base station's own, and one on another address: more would reveal nothing more about a
 * NAT.
 */
const MAX_STUN = 2;

/** Returns undefined, and thus no field, for none. @throws LocalError INVALID_ARGUMENT for a name */
export function stunField(servers: readonly StunServer[] | undefined): CborValue | undefined {
  if (servers === undefined || servers.length === 0) return undefined;
  return servers.map(({ address, port, responsePort }) => ({
    ...(address === undefined ? { Port: port } : addressMap({ address, port })),
    ...(responsePort === true && { ResponsePort: true }),
  }));
}

/** @throws RemoteError PARSE */
export function readStun(from: CborMap): StunServer[] | undefined {
  return optionalArrayField(from, 'Stun', MAX_STUN)?.map((each) => readServer(map(each, 'an entry of Stun')));
}

function readServer(from: CborMap): StunServer {
  const hasAddress = Object.hasOwn(from, 'Ip') && from.Ip !== null && from.Ip !== undefined;
  const at = hasAddress ? readAddress(from) : { port: uint(from, 'Port', { min: 1, max: 0xffff }) };
  return optionalBool(from, 'ResponsePort') === true ? { ...at, responsePort: true } : at;
}
