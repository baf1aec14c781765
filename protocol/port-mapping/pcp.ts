/**
 * Port Control Protocol (RFC 6887): the MAP request and response for UDP, over a table of field offsets. Options are
 * neither sent nor read; ANNOUNCE does not count as an answer.
 */

/** UDP port of PCP and NAT-PMP servers (RFC 6887 §19.1). */
export const PCP_PORT = 5351;
export const PCP_VERSION = 2;
/** Length of a mapping nonce, bytes. */
export const NONCE_LENGTH = 12;
/** Largest PCP message (RFC 6887 §7). */
const MAX_LENGTH = 1100;

const OPCODE_MAP = 1;
const RESPONSE = 0x80;
/** UDP (IANA protocol numbers). */
const PROTOCOL_UDP = 17;

/** Fields of both messages: version, opcode, lifetime in s; and of the MAP data after the 24-byte header. */
const AT = {
  VERSION: 0,
  OPCODE: 1,
  RESULT: 3,
  LIFETIME: 4,
  CLIENT: 8,
  EPOCH: 8,
  NONCE: 24,
  PROTOCOL: 36,
  INTERNAL: 40,
  EXTERNAL: 42,
  ADDRESS: 44,
} as const;
const HEADER_LENGTH = 24;
const MAP_LENGTH = 60;
/** Prefix of an IPv4 address in a field for IPv6 addresses (RFC 6887 §5). */
const MAPPED_PREFIX = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff);

/** The result codes (RFC 6887 §7.4) that are handled. */
export const PcpResult = { SUCCESS: 0, UNSUPP_VERSION: 1, UNSUPP_OPCODE: 4 } as const;

/** All result codes as text. */
const RESULT_NAMES = [
  'SUCCESS',
  'UNSUPP_VERSION',
  'NOT_AUTHORIZED',
  'MALFORMED_REQUEST',
  'UNSUPP_OPCODE',
  'UNSUPP_OPTION',
  'MALFORMED_OPTION',
  'NETWORK_FAILURE',
  'NO_RESOURCES',
  'UNSUPP_PROTOCOL',
  'USER_EX_QUOTA',
  'CANNOT_PROVIDE_EXTERNAL',
  'ADDRESS_MISMATCH',
  'EXCESSIVE_REMOTE_PEERS',
];

export interface PcpMapRequest {
  /** s; 0 deletes the mapping. */
  readonly lifetime: number;
  /** The client's own address as the server sees it, 4 or 16 bytes. */
  readonly client: Uint8Array;
  readonly nonce: Uint8Array;
  readonly internalPort: number;
  /** Suggested; 0 for none. */
  readonly externalPort: number;
  /** Suggested, 4 or 16 bytes; all zeros for none. */
  readonly external: Uint8Array;
}

export interface PcpMapResponse {
  readonly result: number;
  /** Lifetime of the mapping, or of the error, s. */
  readonly lifetime: number;
  /** s since the server lost its state. */
  readonly epoch: number;
  readonly nonce: Uint8Array;
  readonly internalPort: number;
  readonly externalPort: number;
  /** 4 or 16 bytes. */
  readonly external: Uint8Array;
}

export function encodePcpMap(request: PcpMapRequest): Uint8Array {
  const bytes = new Uint8Array(MAP_LENGTH);
  const view = new DataView(bytes.buffer);
  bytes[AT.VERSION] = PCP_VERSION;
  bytes[AT.OPCODE] = OPCODE_MAP;
  view.setUint32(AT.LIFETIME, request.lifetime);
  writeAddress(bytes, AT.CLIENT, request.client);
  bytes.set(request.nonce, AT.NONCE);
  bytes[AT.PROTOCOL] = PROTOCOL_UDP;
  view.setUint16(AT.INTERNAL, request.internalPort);
  view.setUint16(AT.EXTERNAL, request.externalPort);
  writeAddress(bytes, AT.ADDRESS, request.external);
  return bytes;
}

/** Returns null for anything but a response to a MAP request for UDP. */
export function decodePcpMap(datagram: Uint8Array): PcpMapResponse | null {
  if (!isPcpResponse(datagram) || datagram.length < MAP_LENGTH || datagram[AT.PROTOCOL] !== PROTOCOL_UDP) return null;
  const view = new DataView(datagram.buffer, datagram.byteOffset, datagram.length);
  return {
    result: datagram[AT.RESULT]!,
    lifetime: view.getUint32(AT.LIFETIME),
    epoch: view.getUint32(AT.EPOCH),
    nonce: datagram.slice(AT.NONCE, AT.NONCE + NONCE_LENGTH),
    internalPort: view.getUint16(AT.INTERNAL),
    externalPort: view.getUint16(AT.EXTERNAL),
    external: readAddress(datagram, AT.ADDRESS),
  };
}

/**
 * Returns whether a server reports that it does not support this version (RFC 6887 §9): its answer need not be one to
 * MAP.
 */
export function isPcpRefusal(datagram: Uint8Array): boolean {
  return (
    datagram.length >= HEADER_LENGTH &&
    (datagram[AT.OPCODE]! & RESPONSE) !== 0 &&
    datagram[AT.VERSION] !== 0 &&
    datagram[AT.RESULT] === PcpResult.UNSUPP_VERSION
  );
}

export function pcpResultName(result: number): string {
  return RESULT_NAMES[result] ?? `result ${result}`;
}

function isPcpResponse(datagram: Uint8Array): boolean {
  const { length } = datagram;
  if (length < HEADER_LENGTH || length > MAX_LENGTH || length % 4 !== 0) return false;
  return datagram[AT.VERSION] === PCP_VERSION && datagram[AT.OPCODE] === (RESPONSE | OPCODE_MAP);
}

function writeAddress(bytes: Uint8Array, at: number, address: Uint8Array): void {
  if (address.length === 4) bytes.set(MAPPED_PREFIX, at);
  bytes.set(address, at + 16 - address.length);
}

function readAddress(bytes: Uint8Array, at: number): Uint8Array {
  const isMapped = MAPPED_PREFIX.every((byte, i) => bytes[at + i] === byte);
  return bytes.slice(isMapped ? at + 12 : at, at + 16);
}
