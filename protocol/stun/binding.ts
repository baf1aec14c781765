/**
 * Plain Binding (RFC 8489 §3): "where do you see me?" An answer holds nothing that the network between could not change; what it says is a hint. A
 * request is the header alone: the base station answers nothing else, so its answers cannot be made larger than 32 bytes, 44 for IPv6. Answers of
 * other servers are read, too: they may have attributes that we do not use.
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
  isStun,
  mappedLength,
  message,
  readMapped,
  transactionOf,
  typeOf,
  u16,
  writeMapped,
} from './message.ts';

/** Attributes below COMPREHENSION_OPTIONAL that an answer may have and that say nothing to us. */
const SKIPPED: ReadonlySet<number> = new Set([Attribute.MAPPED_ADDRESS, Attribute.USERNAME, Attribute.PADDING]);

/** @param transaction 12 random bytes. @throws LocalError INVALID_ARGUMENT for another length */
export function encodeBinding(transaction: Uint8Array): Uint8Array {
  return message(BINDING_REQUEST, HEADER, transaction);
}

/** Whether a datagram is a plain request: the header and nothing else. */
export function isBinding(datagram: Uint8Array): boolean {
  return datagram.length === HEADER && isStun(datagram) && typeOf(datagram) === BINDING_REQUEST;
}

/** @param source where the request came from. @throws LocalError INVALID_ARGUMENT for a source that is not numeric */
export function encodeBindingAnswer(request: Uint8Array, source: SocketAddress): Uint8Array {
  const ip = ipOf(source.address);
  const answer = message(BINDING_SUCCESS, HEADER + ATTRIBUTE_HEADER + mappedLength(ip.length), transactionOf(request));
  writeMapped(answer, HEADER, ip, source.port);
  return answer;
}

/**
 * Transaction id as 24 hex digits and XOR-MAPPED-ADDRESS of a success response; null for anything else, and for an answer with an attribute that
 * must be understood and is not (RFC 8489 §6.3.3).
 */
export function readBindingAnswer(datagram: Uint8Array): { transaction: string; mapped: SocketAddress } | null {
  if (!isStun(datagram) || typeOf(datagram) !== BINDING_SUCCESS) return null;
  let mapped: SocketAddress | null = null;
  for (let at = HEADER; at < datagram.length; ) {
    const [type, length] = [u16(datagram, at), u16(datagram, at + 2)];
    const value = at + ATTRIBUTE_HEADER;
    if (value + length > datagram.length) return null;
    // Attributes behind the integrity are ignored (§14.5, §14.6).
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
