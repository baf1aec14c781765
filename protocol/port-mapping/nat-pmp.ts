/**
 * NAT Port Mapping Protocol (RFC 6886): the external address and mappings for UDP, over a table of field offsets. IPv4
 * only.
 */

const VERSION = 0;
const RESPONSE = 0x80;
const OPCODE_ADDRESS = 0;
const OPCODE_MAP_UDP = 1;

const AT = { VERSION: 0, OPCODE: 1, RESULT: 2, EPOCH: 4, ADDRESS: 8, INTERNAL: 8, EXTERNAL: 10, LIFETIME: 12 } as const;
/** Offsets of a mapping request, which has other fields. */
const REQUEST_AT = { INTERNAL: 4, EXTERNAL: 6, LIFETIME: 8 } as const;
const REQUEST_LENGTH = 12;
const MIN_LENGTH = 8;
const ADDRESS_LENGTH = 12;
const MAP_LENGTH = 16;

/** Result codes (RFC 6886 §3.5) as text. */
const RESULT_NAMES = ['success', 'unsupported version', 'not authorized', 'network failure', 'out of resources', 'unsupported opcode'];

export interface NatPmpRequest {
  /** s; 0 deletes the mapping. */
  readonly lifetime: number;
  readonly internalPort: number;
  /** Suggested; 0 for none. */
  readonly externalPort: number;
}

/** `refusal`: a result other than 0, for any opcode or version. */
export type NatPmpResponse =
  | { readonly kind: 'address'; readonly result: 0; readonly epoch: number /** 4 bytes. */; readonly address: Uint8Array }
  | {
      readonly kind: 'map';
      readonly result: 0;
      readonly epoch: number;
      readonly internalPort: number;
      readonly externalPort: number;
      /** s. */
      readonly lifetime: number;
    }
  | { readonly kind: 'refusal'; readonly result: number; readonly epoch: number };

export function encodeNatPmpAddress(): Uint8Array {
  return Uint8Array.of(VERSION, OPCODE_ADDRESS);
}

export function encodeNatPmpMap(request: NatPmpRequest): Uint8Array {
  const bytes = new Uint8Array(REQUEST_LENGTH);
  const view = new DataView(bytes.buffer);
  bytes[AT.OPCODE] = OPCODE_MAP_UDP;
  view.setUint16(REQUEST_AT.INTERNAL, request.internalPort);
  view.setUint16(REQUEST_AT.EXTERNAL, request.externalPort);
  view.setUint32(REQUEST_AT.LIFETIME, request.lifetime);
  return bytes;
}

/** Returns null for anything but a response of a NAT-PMP server to one of these requests. */
export function decodeNatPmp(datagram: Uint8Array): NatPmpResponse | null {
  if (!isNatPmp(datagram)) return null;
  const view = new DataView(datagram.buffer, datagram.byteOffset, datagram.length);
  const opcode = datagram[AT.OPCODE]! - RESPONSE;
  const [result, epoch] = [view.getUint16(AT.RESULT), view.getUint32(AT.EPOCH)];
  if (result !== 0) return { kind: 'refusal', result, epoch };
  if (opcode === OPCODE_ADDRESS && datagram.length === ADDRESS_LENGTH)
    return { kind: 'address', result, epoch, address: datagram.slice(AT.ADDRESS) };
  if (opcode !== OPCODE_MAP_UDP || datagram.length !== MAP_LENGTH) return null;
  const [internalPort, externalPort] = [view.getUint16(AT.INTERNAL), view.getUint16(AT.EXTERNAL)];
  return { kind: 'map', result, epoch, internalPort, externalPort, lifetime: view.getUint32(AT.LIFETIME) };
}

export function natPmpResultName(result: number): string {
  return RESULT_NAMES[result] ?? `result ${result}`;
}

/** Returns whether a NAT-PMP server sent this, in answer to anything, even to a PCP request (RFC 6886 §3.5). */
export function isNatPmp(datagram: Uint8Array): boolean {
  return (
    datagram.length >= MIN_LENGTH && datagram.length <= MAP_LENGTH && datagram[AT.VERSION] === VERSION && datagram[AT.OPCODE]! >= RESPONSE
  );
}
