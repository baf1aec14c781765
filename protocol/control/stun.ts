/** STUN of a base station in its answers to attach and connect: `Stun: [{Ip?, Port}]`, at most two. */

import { type CborMap, type CborValue, map, optionalArrayField, uint } from '../cbor/index.ts';
import { addressMap, readAddress } from './address.ts';

/** Where a base station answers plain Binding (protocol/stun/). */
export interface StunServer {
  /** Numeric; absent: the address at which the base station itself was reached. */
  readonly address?: string;
  readonly port: number;
}

/** One on another port than the base station's own, and one on another address: more would show nothing more of a NAT. */
const MAX_STUN = 2;

/** Undefined, and thus no field, for none. @throws LocalError INVALID_ARGUMENT for a name */
export function stunField(servers: readonly StunServer[] | undefined): CborValue | undefined {
  if (servers === undefined || servers.length === 0) return undefined;
  return servers.map(({ address, port }) => (address === undefined ? { Port: port } : { ...addressMap({ address, port }) }));
}

/** @throws RemoteError PARSE */
export function readStun(from: CborMap): StunServer[] | undefined {
  return optionalArrayField(from, 'Stun', MAX_STUN)?.map((each) => readServer(map(each, 'an entry of Stun')));
}

function readServer(from: CborMap): StunServer {
  const hasAddress = Object.hasOwn(from, 'Ip') && from.Ip !== null && from.Ip !== undefined;
  return hasAddress ? readAddress(from) : { port: uint(from, 'Port', { min: 1, max: 0xffff }) };
}
