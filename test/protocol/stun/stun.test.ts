/** STUN: published messages, plain Binding, keyed checks, and everything else. */
import { describe, expect, test } from 'vitest';
import { LocalError } from '../../../protocol/errors/index.ts';
import {
  answerPort,
  CHECK_LENGTH,
  encodeBinding,
  encodeBindingAnswer,
  encodeBindingToPort,
  encodeCheck,
  encodeCheckAnswer,
  isStun,
  readBindingAnswer,
  readCheckAnswer,
  tagOfCheck,
  transactionOfAnswer,
  verifyCheck,
} from '../../../protocol/stun/index.ts';
import { hosts, nativeHost } from '../../support/crypto.ts';
import * as vectors from './vectors.ts';

const crypto = nativeHost(1);
const tag = crypto.randomBytes(8);
const key = crypto.randomBytes(16);
const transaction = crypto.randomBytes(12);
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const sources = [
  { address: '192.0.2.1', port: 32_853 },
  { address: '2001:db8:1234:5678:11:2233:4455:6677', port: 1 },
];

/** Makes a success response with these attributes in hex. */
function response(...attributes: string[]): Uint8Array {
  const body = attributes.join('');
  return Buffer.from(`0101${(body.length / 2).toString(16).padStart(4, '0')}2112a442${vectors.TRANSACTION}${body}`, 'hex');
}

const MAPPED = '002000080001a147e112a643';

describe('published messages', () => {
  test.each([
    ['RFC 5769 §2.2', vectors.responseV4, sources[0]!],
    ['RFC 5769 §2.3', vectors.responseV6, { ...sources[1]!, port: 32_853 }],
  ])('%s: the mapped address is decoded', (_, answer, mapped) => {
    expect(isStun(answer)).toBe(true);
    expect(transactionOfAnswer(answer)).toBe(vectors.TRANSACTION);
    expect(readBindingAnswer(answer)).toEqual({ transaction: vectors.TRANSACTION, mapped });
    expect(readCheckAnswer(answer, key, crypto)).toBeNull();
  });

  test.each([
    ['RFC 5769 §2.1', vectors.request],
    ['RFC 5769 §2.4', vectors.longTermRequest],
    ['RFC 8489 B.1', vectors.sha256Request],
  ])('%s: a request is STUN, but neither plain nor a check', (_, request) => {
    expect(isStun(request)).toBe(true);
    expect(answerPort(request, 7)).toBe(0);
    expect(tagOfCheck(request)).toBeNull();
    expect(transactionOfAnswer(request)).toBeNull();
    expect(readBindingAnswer(request)).toBeNull();
  });

  test('integrity covers everything before it, under a length that includes it, as in RFC 8489 B.1', () => {
    const { sha256Request: message, sha256Credentials: credentials } = vectors;
    const code = crypto.hmacSha256(crypto.sha256(new TextEncoder().encode(credentials)), message.subarray(0, -36));
    expect(hex(message.subarray(-32))).toBe(hex(code));
    const check = encodeCheck(tag, key, transaction, crypto);
    expect(hex(check.subarray(-16))).toBe(hex(crypto.hmacSha256(key, check.subarray(0, -20)).subarray(0, 16)));
    expect(check[3]).toBe(check.length - 20);
  });

  test('our answer has the bytes of RFC 5769', () => {
    const request = encodeBinding(Buffer.from(vectors.TRANSACTION, 'hex'));
    expect(hex(encodeBindingAnswer(request, sources[0]!))).toBe(hex(response(MAPPED)));
    const mapped = '002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d9';
    expect(hex(encodeBindingAnswer(request, { ...sources[1]!, port: 32_853 }))).toBe(hex(response(mapped)));
  });
});

describe('plain Binding', () => {
  test('a request is a header only, and its answer has the address and the transaction id', () => {
    const request = encodeBinding(transaction);
    expect(hex(request)).toBe(`000100002112a442${hex(transaction)}`);
    expect(answerPort(request, 7)).toBe(7);
    for (const mapped of sources) {
      const answer = encodeBindingAnswer(request, mapped);
      expect(answer.length).toBe(mapped.address.includes(':') ? 44 : 32);
      expect(answerPort(answer, 7)).toBe(0);
      expect(readBindingAnswer(answer)).toEqual({ transaction: hex(transaction), mapped });
    }
  });

  test('RESPONSE-PORT has the answer sent to another port from 1,024 on, and is no larger than necessary (RFC 5780 §7.5)', () => {
    const request = encodeBindingToPort(50_000, transaction);
    expect(hex(request)).toBe(`000100082112a442${hex(transaction)}00270002c3500000`);
    expect(answerPort(request, 7)).toBe(50_000);
    // Some implementations include the padding in the attribute length.
    expect(answerPort(request.with(23, 4), 7)).toBe(50_000);
    for (const [port, expected] of [
      [0, 0],
      [53, 0],
      [1_023, 0],
      [1_024, 1_024],
      [65_535, 65_535],
    ] as const)
      expect(answerPort(encodeBindingToPort(port, transaction), 7)).toBe(expected);
    const padded = new Uint8Array(32);
    padded.set(request.with(3, 12));
    for (const other of [request.with(23, 3), request.with(21, 0x26), request.with(0, 1), request.subarray(0, 24), padded])
      expect(answerPort(other, 7)).toBe(0);
  });

  test('an IPv4-mapped source is encoded as IPv4, and a zone is left out', () => {
    const mapped = (address: string) =>
      readBindingAnswer(encodeBindingAnswer(encodeBinding(transaction), { address, port: 1 }))?.mapped.address;
    expect(['::ffff:192.0.2.1', 'fe80::1%eth0'].map(mapped)).toEqual(['192.0.2.1', 'fe80::1']);
  });

  test('invalid arguments are local errors', () => {
    expect(() => encodeBinding(new Uint8Array(11))).toThrow(LocalError);
    expect(() => encodeBindingAnswer(encodeBinding(transaction), { address: 'localhost', port: 1 })).toThrow(LocalError);
  });

  test.each<[string, Uint8Array]>([
    ['no mapped address', response()],
    ['a mapped address only after the integrity', response('000800040000000a', MAPPED)],
    ['port 0', response('0020000800012112e112a643')],
    ['a third family', response('002000080003a147e112a643')],
    ['a family that does not match its length', response('002000080002a147e112a643')],
    ['an address of 5 bytes', response('002000090001a147e112a64300000000')],
    ['an attribute that exceeds the message', response('802200ff', MAPPED)],
    ['an attribute after the address that exceeds the message', response(MAPPED, '802200ff')],
    ['an address that exceeds the message', response('00200008', '0001a147')],
    ['an attribute that must be understood', response('7fff0000', MAPPED)],
    ['an invalid first address, although the second is valid', response('0020000800012112e112a643', MAPPED)],
    ['an error response', Buffer.from(`01110000${hex(response()).slice(8)}`, 'hex')],
  ])('an answer with %s is refused', (_, answer) => {
    expect(readBindingAnswer(answer)).toBeNull();
  });

  test('an answer of another server may have more attributes, and only its first address counts', () => {
    const other = '002000080001a147e112a644';
    const answer = response('0001000800018055c0000201', '8022000378797a00', MAPPED, other, '802b000800010d96c0000201');
    expect(readBindingAnswer(answer)?.mapped).toEqual(sources[0]);
  });
});

describe('STUN detection', () => {
  test.each<[string, (bytes: Uint8Array) => Uint8Array]>([
    ['a header cut short', (bytes) => bytes.subarray(0, 19)],
    ['an extra byte', (bytes) => Uint8Array.of(...bytes, 0)],
    ['a length that is not a multiple of 4', (bytes) => withByte(Uint8Array.of(...bytes, 0), 3, 1)],
    ['another cookie', (bytes) => withByte(bytes, 7, 0x43)],
    ['the first byte of our own packets', (bytes) => withByte(bytes, 0, 0x80)],
    ['a first byte of 4', (bytes) => withByte(bytes, 0, 4)],
    ['a length that does not fit', (bytes) => withByte(bytes, 3, 4)],
  ])('refuses %s', (_, damage) => {
    expect(isStun(damage(encodeBinding(transaction)))).toBe(false);
  });
});

describe.each(hosts)('checks over %s', (_, host) => {
  const crypto = host(1);
  const check = encodeCheck(tag, key, transaction, crypto);

  test('a check names its receiver and holds under its key alone', () => {
    expect(check.length).toBe(CHECK_LENGTH);
    expect(isStun(check)).toBe(true);
    expect(answerPort(check, 7)).toBe(0);
    expect(tagOfCheck(check)).toBe(hex(tag));
    expect(verifyCheck(check, key, crypto)).toBe(true);
    expect(verifyCheck(check, crypto.randomBytes(16), crypto)).toBe(false);
    expect(transactionOfAnswer(check)).toBeNull();
    expect(readCheckAnswer(check, key, crypto)).toBeNull();
  });

  test.each(sources)('its answer has the same size and transaction id, and the address $address', (source) => {
    const answer = encodeCheckAnswer(check, source, key, crypto);
    expect(answer.length).toBe(CHECK_LENGTH);
    expect(transactionOfAnswer(answer)).toBe(hex(transaction));
    expect(readCheckAnswer(answer, key, crypto)).toEqual(source);
    expect(readCheckAnswer(answer, crypto.randomBytes(16), crypto)).toBeNull();
    // Any STUN decoder understands it.
    expect(readBindingAnswer(answer)).toEqual({ transaction: hex(transaction), mapped: source });
    expect([tagOfCheck(answer), verifyCheck(answer, key, crypto)]).toEqual([null, false]);
  });

  test('a check or an answer with any bit changed is refused', () => {
    const answers = sources.map((source) => encodeCheckAnswer(check, source, key, crypto));
    for (let bit = 0; bit < 8 * CHECK_LENGTH; bit += 3) {
      expect(verifyCheck(flipped(check, bit), key, crypto)).toBe(false);
      for (const answer of answers) expect(readCheckAnswer(flipped(answer, bit), key, crypto)).toBeNull();
    }
  });

  test('a check that is cut or extended is refused', () => {
    for (let length = 0; length < CHECK_LENGTH; length++) expect(verifyCheck(check.subarray(0, length), key, crypto)).toBe(false);
    expect(verifyCheck(Uint8Array.of(...check, 0, 0, 0, 0), key, crypto)).toBe(false);
  });
});

describe('the form of a check', () => {
  /** Makes a message in the form of a check with valid integrity, with `bytes` at `at`. */
  function sealed(at: number, ...bytes: number[]): Uint8Array {
    const check = encodeCheck(tag, key, transaction, crypto);
    check.set(bytes, at);
    check.set(crypto.hmacSha256(key, check.subarray(0, 56)).subarray(0, 16), 60);
    return check;
  }

  test.each([
    ['another method', sealed(1, 3)],
    ['an indication', sealed(1, 0x11)],
    ['another attribute than USERNAME', sealed(21, 0x14)],
    ['a USERNAME of another length', sealed(23, 15)],
    ['another attribute than PADDING', sealed(41, 0x24)],
    ['a PADDING of another length', sealed(43, 8)],
    ['MESSAGE-INTEGRITY of SHA-1', sealed(57, 0x08)],
  ])('%s is refused, although its integrity is valid', (_, datagram) => {
    expect(isStun(datagram)).toBe(true);
    expect([tagOfCheck(datagram), verifyCheck(datagram, key, crypto)]).toEqual([null, false]);
  });

  test('a tag in upper case or with other letters names no receiver', () => {
    for (const letter of 'AFGg/:`@ \0') expect(tagOfCheck(sealed(24, letter.charCodeAt(0)))).toBeNull();
    expect(tagOfCheck(sealed(24, 0x39))).toBe(`9${hex(tag).slice(1)}`);
  });

  test('invalid arguments are local errors', () => {
    expect(() => encodeCheck(new Uint8Array(7), key, transaction, crypto)).toThrow(LocalError);
    expect(() => encodeCheck(tag, new Uint8Array(0), transaction, crypto)).toThrow(LocalError);
    expect(() => encodeCheck(tag, key, new Uint8Array(13), crypto)).toThrow(LocalError);
    const check = encodeCheck(tag, key, transaction, crypto);
    expect(() => encodeCheckAnswer(check, { address: 'localhost', port: 1 }, key, crypto)).toThrow(LocalError);
    expect(() => encodeCheckAnswer(check, sources[0]!, new Uint8Array(15), crypto)).toThrow(LocalError);
  });
});

function withByte(bytes: Uint8Array, at: number, value: number): Uint8Array {
  const copy = bytes.slice();
  copy[at] = value;
  return copy;
}

function flipped(bytes: Uint8Array, bit: number): Uint8Array {
  return withByte(bytes, bit >> 3, bytes[bit >> 3]! ^ (1 << (bit & 7)));
}
