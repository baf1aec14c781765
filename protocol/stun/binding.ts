/**
 * Plain Binding (RFC 8489 §3): "where do you see me?" The network in between could change an answer, so its content is
 * only a hint. A request is the header alone, or the header and RESPONSE-PORT (RFC 5780 §7.5), which requests the
 * answer at another port of the same address. The base station answers nothing else, so its answers are never larger
 * than 32 bytes, or 44 for IPv6. Answers of other servers are accepted, too: they may have attributes that we do not
 * use.
 *
 *   20  RESPONSE-PORT: port u16, two bytes of padding. Its length is written as 2 and read as 2 or 4: implementations
 *       differ in whether they count the padding.
 */
import type { SocketAddress } from '../address.ts';
import {
  ATTRIBUTE_HEADER,
  Attribute,
  BINDING_REQUEST,
  BINDING_SUCCESS,
  COMPREHENSION_OPTIONAL,
  digits,
  HEADER,
  ipOf,
  isAttribute,
  isStun,
  mappedLength,
  message,
  readMapped,
  transactionOf,
  typeOf,
  u16,
  writeAttribute,
  writeMapped,
  writeU16,
} from './message.ts';

/** Length of a request with RESPONSE-PORT: header, head of the attribute, port, padding. */
const WITH_RESPONSE_PORT = HEADER + ATTRIBUTE_HEADER + 4;
/** RFC 5780 §7.5 counts only the port; some implementations count the padding, too. */
const RESPONSE_PORT_LENGTHS = [2, 4] as const;
/** Our constant: lower ports belong to services, which have no NAT mapping to measure. */
export const MIN_RESPONSE_PORT = 1_024;

/** Attributes below COMPREHENSION_OPTIONAL that an answer may have and that are ignored. */
const SKIPPED: ReadonlySet<number> = new Set([Attribute.MAPPED_ADDRESS, Attribute.USERNAME, Attribute.PADDING]);

/** @param transaction 12 random bytes. @throws LocalError INVALID_ARGUMENT for another length */
export function encodeBinding(transaction: Uint8Array): Uint8Array {
  return message(BINDING_REQUEST, HEADER, transaction);
}

/**
 * Encodes a request whose answer goes to another port of the same address.
 * @param port 1,024 to 65,535
 * @param transaction 12 random bytes
 * @throws LocalError INVALID_ARGUMENT for another length
 */
export function encodeBindingToPort(port: number, transaction: Uint8Array): Uint8Array {
  const request = message(BINDING_REQUEST, WITH_RESPONSE_PORT, transaction);
  writeU16(request, writeAttribute(request, HEADER, Attribute.RESPONSE_PORT, RESPONSE_PORT_LENGTHS[0]), port);
  return request;
}

/**
 * Returns the destination port of the answer to a request; 0 for a datagram that gets none: it is not a request, has
 * another attribute, or requests a port below 1,024.
 * @param source port that the datagram came from
 */
export function answerPort(datagram: Uint8Array, source: number): number {
  if (!isStun(datagram) || typeOf(datagram) !== BINDING_REQUEST) return 0;
  if (datagram.length === HEADER) return source;
  if (datagram.length !== WITH_RESPONSE_PORT) return 0;
  if (!RESPONSE_PORT_LENGTHS.some((length) => isAttribute(datagram, HEADER, Attribute.RESPONSE_PORT, length))) return 0;
  const port = u16(datagram, HEADER + ATTRIBUTE_HEADER);
  return port < MIN_RESPONSE_PORT ? 0 : port;
}

/**
 * @param source address that the request came from.
 * @throws LocalError INVALID_ARGUMENT for a source that is not numeric
 */
export function encodeBindingAnswer(request: Uint8Array, source: SocketAddress): Uint8Array {
  const ip = ipOf(source.address);
  const answer = message(BINDING_SUCCESS, HEADER + ATTRIBUTE_HEADER + mappedLength(ip.length), transactionOf(request));
  writeMapped(answer, HEADER, ip, source.port);
  return answer;
}

/**
 * Returns the transaction id as 24 hex digits and XOR-MAPPED-ADDRESS of a success response; null for anything else, and
 * for an answer with an unknown attribute that must be understood (RFC 8489 §6.3.3).
 */
export function readBindingAnswer(datagram: Uint8Array): { transaction: string; mapped: SocketAddress } | null {
  if (!isStun(datagram) || typeOf(datagram) !== BINDING_SUCCESS) return null;
  let mapped: SocketAddress | null = null;
  for (let at = HEADER; at < datagram.length; ) {
    const [type, length] = [u16(datagram, at), u16(datagram, at + 2)];
    const value = at + ATTRIBUTE_HEADER;
    if (value + length > datagram.length) return null;
    // Attributes after the integrity are ignored (§14.5, §14.6).
    if (type === Attribute.MESSAGE_INTEGRITY || type === Attribute.MESSAGE_INTEGRITY_SHA256) break;
    if (type === Attribute.XOR_MAPPED_ADDRESS) {
      // Only the first one counts (§14).
      mapped ??= readMapped(datagram, value, length);
      if (mapped === null) return null;
    } else if (type < COMPREHENSION_OPTIONAL && !SKIPPED.has(type)) return null;
    at = value + ((length + 3) & ~3);
  }
  return mapped === null ? null : { transaction: digits(transactionOf(datagram)), mapped };
}
