/** Test helpers that write CoAP messages in short form and decode what was sent. */
import { blockUnit, readBlock } from '../../../protocol/coap/block.ts';
import {
  type CoapMessage,
  type CoapOption,
  decodeMessage,
  type Exchanges,
  type ExchangesEvent,
  encodeMessage,
} from '../../../protocol/coap/index.ts';
import { OptionNumber, readUint, uintOptionOf } from '../../../protocol/coap/options.ts';

/** Size of the largest message, bytes (PROTOCOL.md §5). */
export const R = 66_560;
export const KIB = 1024;

export const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
export const textOf = (payload: Uint8Array): string => new TextDecoder().decode(payload);
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Joins bytes that are given one by one and as texts. */
export const frame = (...parts: (number | string)[]): Uint8Array =>
  Uint8Array.from(parts.flatMap((part) => (typeof part === 'number' ? [part] : [...ascii(part)])));

export const textOption = (number: number, value: string): CoapOption => ({ number, value: ascii(value) });
export const option = (number: number, value: number): CoapOption => uintOptionOf(number, value);
export const path = (...segments: string[]): CoapOption[] => segments.map((segment) => textOption(OptionNumber.URI_PATH, segment));

/** Converts a datagram of RFC 7252 to our form, without version, type and message id. */
export const fromUdp = (datagram: Uint8Array): Uint8Array => Uint8Array.of(datagram[0]! & 15, datagram[1]!, ...datagram.subarray(4));

/** Returns a message with its bytes in hex, for comparisons. */
export function normal({ code, token, options, payload }: CoapMessage): unknown {
  return { code, token: hex(token), options: options.map(({ number, value }) => [number, hex(value)]), payload: hex(payload) };
}

export const message = (
  code: number,
  token: readonly number[],
  options: CoapMessage['options'],
  payload: Uint8Array = new Uint8Array(0),
): Uint8Array => encodeMessage({ code, token: Uint8Array.from(token), options, payload });

/** Encodes the value of a block option. */
export const blockNumber = (number: number, more: number, exponent: number): number => number * 16 + more * 8 + exponent;

/** Returns a block option of a message as text: number/more/exponent. */
export function block({ options }: CoapMessage, number: number): string | undefined {
  const option = options.find((candidate) => candidate.number === number);
  if (option === undefined) return undefined;
  const { number: n, more, exponent } = readBlock(readUint(option.value));
  return `${n}/${more ? 1 : 0}/${exponent}`;
}

/** Returns it as the standards write it: number/more/size, BERT for exponent 7. */
export function shownBlock({ options }: CoapMessage, number: number): string | undefined {
  const option = options.find((candidate) => candidate.number === number);
  if (option === undefined) return undefined;
  const { number: n, more, exponent } = readBlock(readUint(option.value));
  return `${n}/${more ? 1 : 0}/${exponent === 7 ? 'BERT' : blockUnit(exponent)}`;
}

/** Returns the next message that an end sends, null for none. */
export function next(exchanges: Exchanges): CoapMessage | null {
  const bytes = exchanges.transmit();
  return bytes === null ? null : decodeMessage(bytes);
}

export function responseOf(event: ExchangesEvent | null | undefined): Extract<ExchangesEvent, { kind: 'response' }> {
  if (event?.kind !== 'response') throw new Error(`${event?.kind} instead of a response`);
  return event;
}

export function requestOf(event: ExchangesEvent | null | undefined): Extract<ExchangesEvent, { kind: 'request' }> {
  if (event?.kind !== 'request') throw new Error(`${event?.kind} instead of a request`);
  return event;
}
