/**
 * Encodings from the standards. Each test is named after its figure or table:
 *
 * - RFC 7252 §3 (figure 7, header of a datagram), §3.1 (option deltas and lengths), §3.2 (uint), table 4 (§5.10),
 *   tables 5 and 6 (§12.1), appendix A (figures 16 to 23). Figures 16 and 17 show whole datagrams. For figures 18 to 23
 *   the standard gives the fields, and the bytes here are those fields in the form of figure 7. Appendix B is in
 *   `path.test.ts`.
 * - RFC 8323 §3.2 (figure 5), §5.7 (figures 11 and 12), appendix A (figures 17 and 18). Our messages have the form of
 *   its WebSocket messages (§4.2): the length is zero, so these bytes are used unchanged.
 * - RFC 7959 §2.1 (table 1), §3 (its two option values) and table 2 (§4); RFC 7641 §2 (table 1).
 *
 * Our messages have no version, type and message id, so these are removed before a comparison.
 */
import { parse } from 'coap-packet';
import { describe, expect, test } from 'vitest';
import { blockUnit, blockValue, readBlock } from '../../../protocol/coap/block.ts';
import {
  type CoapMessage,
  type CoapOption,
  codeOfStatus,
  decodeMessage,
  encodeMessage,
  MethodCode,
  methodOfCode,
  Status,
} from '../../../protocol/coap/index.ts';
import { isCritical, OptionNumber, optionTable, readUint, uintValue } from '../../../protocol/coap/options.ts';
import { ascii, frame, fromUdp, normal, textOption } from './messages.ts';

const GET = 0x01;
const CONTENT = 0x45;
const TEMPERATURE = textOption(OptionNumber.URI_PATH, 'temperature');

const of = (code: number, token: number[], options: CoapOption[], payload = ''): CoapMessage => ({
  code,
  token: Uint8Array.from(token),
  options,
  payload: ascii(payload),
});

describe('RFC 7252 appendix A', () => {
  test.each<[string, number, Uint8Array, CoapMessage]>([
    ['figure 16, request', 16, frame(0x40, 0x01, 0x7d, 0x34, 0xbb, 'temperature'), of(GET, [], [TEMPERATURE])],
    ['figure 16, response', 11, frame(0x60, 0x45, 0x7d, 0x34, 0xff, '22.3 C'), of(CONTENT, [], [], '22.3 C')],
    ['figure 17, request', 17, frame(0x41, 0x01, 0x7d, 0x35, 0x20, 0xbb, 'temperature'), of(GET, [0x20], [TEMPERATURE])],
    ['figure 17, response', 12, frame(0x61, 0x45, 0x7d, 0x35, 0x20, 0xff, '22.3 C'), of(CONTENT, [0x20], [], '22.3 C')],
  ])('%s, %i bytes', (_, length, datagram, message) => {
    expect(datagram).toHaveLength(length);
    expect(normal(decodeMessage(fromUdp(datagram)))).toEqual(normal(message));
    expect(encodeMessage(message)).toEqual(fromUdp(datagram));
  });

  // Type, message id, token, code, then either the path of a request or the payload of a response.
  test.each<[string, 'CON' | 'NON' | 'ACK' | 'RST', number, number[], number, string?]>([
    ['figure 18, request', 'CON', 0x7d36, [0x31], GET],
    ['figure 18, response', 'ACK', 0x7d36, [0x31], CONTENT, '22.3 C'],
    ['figure 19, request', 'CON', 0x7d37, [0x42], GET],
    ['figure 19, response', 'ACK', 0x7d37, [0x42], CONTENT, '22.3 C'],
    ['figure 20, request', 'CON', 0x7d38, [0x53], GET],
    ['figure 20, acknowledgement', 'ACK', 0x7d38, [], 0],
    ['figure 20, separate response', 'CON', 0xad7b, [0x53], CONTENT, '22.3 C'],
    ['figure 21, request', 'CON', 0x7d39, [0x64], GET],
    ['figure 21, separate response', 'CON', 0xad7c, [0x64], CONTENT, '22.3 C'],
    ['figure 21, reset', 'RST', 0xad7c, [], 0],
    ['figure 22, request', 'NON', 0x7d40, [0x75], GET],
    ['figure 22, response', 'NON', 0xad7d, [0x75], CONTENT, '22.3 C'],
    ['figure 23, request', 'NON', 0x7d41, [0x86], GET],
    ['figure 23, response of A', 'NON', 0x60b1, [0x86], CONTENT, '22.3 C'],
    ['figure 23, response of B', 'NON', 0x01a0, [0x86], CONTENT, '20.9 C'],
    ['figure 23, response of C', 'NON', 0x952a, [0x86], 0x84],
  ])('%s', (_, type, id, token, code, payload) => {
    const head = [0x40 | (['CON', 'NON', 'ACK', 'RST'].indexOf(type) << 4) | token.length, code, id >> 8, id & 0xff, ...token];
    const rest = code === GET ? [0xbb, 'temperature'] : payload === undefined ? [] : [0xff, payload];
    const datagram = frame(...head, ...rest);
    const message = of(code, token, code === GET ? [TEMPERATURE] : [], payload);
    expect(parse(Buffer.from(datagram)).messageId).toBe(id);
    expect(normal(decodeMessage(fromUdp(datagram)))).toEqual(normal(message));
    expect(encodeMessage(message)).toEqual(fromUdp(datagram));
  });
});

describe('RFC 7252 §3', () => {
  // From the lists of Option Delta and Option Length: 0 to 12 directly, 13 with one byte (minus 13), 14 with two bytes
  // (minus 269).
  test.each<[string, number, number, number[]]>([
    ['a delta and a length of 12', 12, 12, [0xcc]],
    ['a delta of 13', 13, 1, [0xd1, 0]],
    ['a delta of 268', 268, 1, [0xd1, 255]],
    ['a delta of 269', 269, 1, [0xe1, 0, 0]],
    ['a delta of 65535', 65_535, 1, [0xe1, 0xfe, 0xf2]],
    ['a length of 13', 1, 13, [0x1d, 0]],
    ['a length of 268', 1, 268, [0x1d, 255]],
    ['a length of 269', 1, 269, [0x1e, 0, 0]],
    ['a delta and a length of 269', 269, 269, [0xee, 0, 0, 0, 0]],
  ])('§3.1: %s', (_, number, length, head) => {
    const message = of(GET, [], [{ number, value: new Uint8Array(length).fill(7) }]);
    const bytes = frame(0, GET, ...head, ...new Array<number>(length).fill(7));
    expect(encodeMessage(message)).toEqual(bytes);
    expect(normal(decodeMessage(bytes))).toEqual(normal(message));
  });

  test('§3.1: several instances of one option have a delta of zero', () => {
    const bytes = frame(0, GET, 0xb1, 'a', 0x01, 'b', 0x41, 'q', 0x01, 'r');
    const options = [textOption(11, 'a'), textOption(11, 'b'), textOption(15, 'q'), textOption(15, 'r')];
    expect(encodeMessage(of(GET, [], options))).toEqual(bytes);
    expect(normal(decodeMessage(bytes))).toEqual(normal(of(GET, [], options)));
  });

  test('§3: a marker byte inside an option value does not begin the payload', () => {
    const message = of(GET, [], [{ number: OptionNumber.ETAG, value: Uint8Array.of(0xff, 0xff) }], 'x');
    expect(encodeMessage(message)).toEqual(frame(0, GET, 0x42, 0xff, 0xff, 0xff, 'x'));
    expect(normal(decodeMessage(frame(0, GET, 0x42, 0xff, 0xff, 0xff, 'x')))).toEqual(normal(message));
  });

  test('§3.2: 0 is empty, 1 is one byte, leading zeros are accepted', () => {
    expect(uintValue(0)).toEqual(new Uint8Array(0));
    expect(uintValue(1)).toEqual(Uint8Array.of(1));
    expect([readUint(new Uint8Array(0)), readUint(Uint8Array.of(1)), readUint(Uint8Array.of(0, 0, 1))]).toEqual([0, 1, 1]);
  });
});

describe('RFC 8323', () => {
  test.each<[string, Uint8Array, CoapMessage]>([
    ['figure 5, no options or payload', frame(0x01, 0x43, 0x7f), of(0x43, [0x7f], [])],
    ['figure 11, Ping', frame(0x01, 0xe2, 0x42), of(0xe2, [0x42], [])],
    ['figure 12, Pong', frame(0x01, 0xe3, 0x42), of(0xe3, [0x42], [])],
    [
      'figure 17, request',
      frame(0x01, 0x01, 0x53, 0xb7, 'sensors', 0x0b, 'temperature', 0x45, 'u=Cel'),
      of(GET, [0x53], [textOption(OptionNumber.URI_PATH, 'sensors'), TEMPERATURE, textOption(OptionNumber.URI_QUERY, 'u=Cel')]),
    ],
    ['figure 17, response', frame(0x01, 0x45, 0x53, 0xff, '22.3 Cel'), of(CONTENT, [0x53], [], '22.3 Cel')],
    [
      'figure 18, request to the proxy',
      // 35 is 13 plus 22, the value of 21 bytes is 13 plus 8.
      frame(0x01, 0x01, 0x7d, 0xdd, 22, 8, 'coap://[2001:db8::1]/'),
      of(GET, [0x7d], [textOption(OptionNumber.PROXY_URI, 'coap://[2001:db8::1]/')]),
    ],
    ['figure 18, request of the proxy', frame(0x02, 0x01, 0x0a, 0x15), of(GET, [0x0a, 0x15], [])],
    ['figure 18, response to the proxy', frame(0x02, 0x45, 0x0a, 0x15, 0xff, 'ready'), of(CONTENT, [0x0a, 0x15], [], 'ready')],
    ['figure 18, response of the proxy', frame(0x01, 0x45, 0x7d, 0xff, 'ready'), of(CONTENT, [0x7d], [], 'ready')],
  ])('%s', (_, bytes, message) => {
    expect(normal(decodeMessage(bytes))).toEqual(normal(message));
    expect(encodeMessage(message)).toEqual(bytes);
  });
});

describe('tables', () => {
  test('RFC 7252 table 4, RFC 7641 table 1, RFC 7959 tables 1 and 2, RFC 7967 §2, RFC 9175 §3.2.1: the options', () => {
    // Critical, number, repeatable, format, least and greatest length.
    const rows = [
      'C 1 R opaque 0-8',
      'C 3 - string 1-255',
      '- 4 R opaque 1-8',
      'C 5 - empty 0-0',
      '- 6 - uint 0-3',
      'C 7 - uint 0-2',
      '- 8 R string 0-255',
      'C 11 R string 0-255',
      '- 12 - uint 0-2',
      '- 14 - uint 0-4',
      'C 15 R string 0-255',
      'C 17 - uint 0-2',
      '- 20 R string 0-255',
      'C 23 - uint 0-3',
      'C 27 - uint 0-3',
      '- 28 - uint 0-4',
      'C 35 - string 1-1034',
      'C 39 - string 1-255',
      '- 60 - uint 0-4',
      '- 258 - uint 0-1',
      '- 292 R opaque 0-8',
    ];
    const ours = optionTable.map(
      ({ number, repeatable, format, min, max }) =>
        `${isCritical(number) ? 'C' : '-'} ${number} ${repeatable ? 'R' : '-'} ${format} ${min}-${max}`,
    );
    expect(ours).toEqual(rows);
  });

  test('RFC 7252 table 5: the methods', () => {
    expect(MethodCode).toEqual({ GET: 0x01, POST: 0x02, PUT: 0x03, DELETE: 0x04 });
    expect([0, 1, 2, 3, 4, 5].map(methodOfCode)).toEqual([undefined, 'GET', 'POST', 'PUT', 'DELETE', undefined]);
  });

  test.each<[string, number, number]>([
    ['2.01 Created', Status.CREATED, 0x41],
    ['2.02 Deleted', Status.DELETED, 0x42],
    ['2.03 Valid', Status.VALID, 0x43],
    ['2.04 Changed', Status.CHANGED, 0x44],
    ['2.05 Content', Status.CONTENT, 0x45],
    ['4.00 Bad Request', Status.BAD_REQUEST, 0x80],
    ['4.01 Unauthorized', Status.UNAUTHORIZED, 0x81],
    ['4.02 Bad Option', Status.BAD_OPTION, 0x82],
    ['4.03 Forbidden', Status.FORBIDDEN, 0x83],
    ['4.04 Not Found', Status.NOT_FOUND, 0x84],
    ['4.05 Method Not Allowed', Status.METHOD_NOT_ALLOWED, 0x85],
    ['4.06 Not Acceptable', Status.NOT_ACCEPTABLE, 0x86],
    ['4.12 Precondition Failed', Status.PRECONDITION_FAILED, 0x8c],
    ['4.13 Request Entity Too Large', Status.REQUEST_ENTITY_TOO_LARGE, 0x8d],
    ['4.15 Unsupported Content-Format', Status.UNSUPPORTED_CONTENT_FORMAT, 0x8f],
    ['5.00 Internal Server Error', Status.INTERNAL_SERVER_ERROR, 0xa0],
    ['5.01 Not Implemented', Status.NOT_IMPLEMENTED, 0xa1],
    ['5.02 Bad Gateway', Status.BAD_GATEWAY, 0xa2],
    ['5.03 Service Unavailable', Status.SERVICE_UNAVAILABLE, 0xa3],
    ['5.04 Gateway Timeout', Status.GATEWAY_TIMEOUT, 0xa4],
    ['5.05 Proxying Not Supported', Status.PROXYING_NOT_SUPPORTED, 0xa5],
  ])('RFC 7252 table 6: %s', (name, status, code) => {
    expect((status / 100).toFixed(2)).toBe(name.slice(0, 4));
    expect(codeOfStatus(status)).toBe(code);
  });

  test('RFC 7959 §3: 33 is 2/0/32 and 59 is 3/1/128', () => {
    const shown = (value: number): string => {
      const { number, more, exponent } = readBlock(value);
      expect(blockValue({ number, more, exponent })).toBe(value);
      return `${number}/${more ? 1 : 0}/${blockUnit(exponent)}`;
    };
    expect([shown(33), shown(59)]).toEqual(['2/0/32', '3/1/128']);
  });
});
