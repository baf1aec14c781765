/** PCP and NAT-PMP byte for byte (RFC 6887 §7 and §11, RFC 6886 §3), garbage, and the epoch. */
import { describe, expect, test } from 'vitest';
import { Epoch } from '../../../protocol/port-mapping/epoch.ts';
import { decodeNatPmp, encodeNatPmpAddress, encodeNatPmpMap, isNatPmp, natPmpResultName } from '../../../protocol/port-mapping/nat-pmp.ts';
import { decodePcpMap, encodePcpMap, isPcpRefusal, pcpResultName } from '../../../protocol/port-mapping/pcp.ts';
import { seededBytes } from '../../support/crypto.ts';

const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text.replace(/\s/g, ''), 'hex'));
const nonce = hex('0102030405060708090a0b0c');
const IPV6 = '20010db8000000000000000000000007';

describe('PCP', () => {
  test('a MAP request has an IPv4 address under ::ffff:0:0/96', () => {
    const request = { lifetime: 3600, client: hex('c0a80107'), nonce, internalPort: 5000, externalPort: 6000, external: hex('0b16212c') };
    expect(encodePcpMap(request)).toEqual(
      hex(`02 01 0000 00000e10 00000000000000000000ffffc0a80107
           0102030405060708090a0b0c 11 000000 1388 1770 00000000000000000000ffff0b16212c`),
    );
    const ipv6 = encodePcpMap({ ...request, lifetime: 0, client: hex(IPV6), externalPort: 0, external: new Uint8Array(16) });
    expect(ipv6).toEqual(hex(`02 01 0000 00000000 ${IPV6} 0102030405060708090a0b0c 11 000000 1388 0000 ${'00'.repeat(16)}`));
  });

  const answer = `02 81 00 00 00000e10 00012345 000000000000000000000000 0102030405060708090a0b0c 11 000000 1388 1770`;

  test('a response has result, lifetime, epoch and an address of either family, and may have options', () => {
    const fields = { result: 0, lifetime: 3600, epoch: 0x12345, nonce, internalPort: 5000, externalPort: 6000 };
    expect(decodePcpMap(hex(`${answer} 00000000000000000000ffff0b16212c`))).toEqual({ ...fields, external: hex('0b16212c') });
    expect(decodePcpMap(hex(`${answer} ${IPV6} 01000000`))).toEqual({ ...fields, external: hex(IPV6) });
    expect(decodePcpMap(hex(`${answer.replace('81 00 00', '81 00 08')} ${IPV6}`))).toMatchObject({ result: 8 });
  });

  test('anything else is not a response', () => {
    const whole = hex(`${answer} ${IPV6}`);
    for (let length = 0; length < whole.length; length++) expect(decodePcpMap(whole.subarray(0, length))).toBeNull();
    for (const [at, value] of [
      [0, 1],
      [1, 1],
      [1, 0x80],
      [36, 6],
    ] as const) {
      const changed = whole.slice();
      changed[at] = value;
      expect(decodePcpMap(changed)).toBeNull();
    }
    expect(decodePcpMap(new Uint8Array([...whole, ...new Uint8Array(1044)]))).toBeNull();
  });

  test('a server of another version is recognised by its header', () => {
    expect(isPcpRefusal(hex(`01 81 00 01 ${'00'.repeat(20)}`))).toBe(true);
    expect(isPcpRefusal(hex(`02 81 00 00 ${'00'.repeat(20)}`))).toBe(false);
    expect(isPcpRefusal(hex(`02 01 00 01 ${'00'.repeat(20)}`))).toBe(false);
    expect(isPcpRefusal(hex(`01 81 00 01 ${'00'.repeat(19)}`))).toBe(false);
  });

  test('results have names', () => {
    expect([0, 8, 13, 14].map(pcpResultName)).toEqual(['SUCCESS', 'NO_RESOURCES', 'EXCESSIVE_REMOTE_PEERS', 'result 14']);
  });
});

describe('NAT-PMP', () => {
  test('requests are those of RFC 6886 §3.2 and §3.3', () => {
    expect(encodeNatPmpAddress()).toEqual(hex('0000'));
    expect(encodeNatPmpMap({ lifetime: 3600, internalPort: 5000, externalPort: 6000 })).toEqual(hex('00 01 0000 1388 1770 00000e10'));
  });

  test('responses are decoded, each with its own length', () => {
    expect(decodeNatPmp(hex('00 80 0000 00012345 0b16212c'))).toEqual({
      kind: 'address',
      result: 0,
      epoch: 0x12345,
      address: hex('0b16212c'),
    });
    const mapped = { kind: 'map', result: 0, epoch: 7, internalPort: 5000, externalPort: 6000, lifetime: 3600 };
    expect(decodeNatPmp(hex('00 81 0000 00000007 1388 1770 00000e10'))).toEqual(mapped);
    expect(decodeNatPmp(hex('00 80 0001 00000007'))).toEqual({ kind: 'refusal', result: 1, epoch: 7 });
    expect([2, 9].map(natPmpResultName)).toEqual(['not authorized', 'result 9']);
  });

  test.each([
    '',
    '00',
    '00 80 0000 00012345 0b1621',
    '00 80 0000 00012345 0b16212c 00',
    '00 81 0000 00000007 1388 1770 00000e',
    '00 82 0000 00000007 1388 1770 00000e10',
    '00 01 0000 1388 1770 00000e10',
    '02 81 0000 00000007 1388 1770 00000e10',
  ])('"%s" is not a response', (text) => {
    expect(decodeNatPmp(hex(text))).toBeNull();
  });
});

test('the decoders never throw', () => {
  const random = seededBytes(1);
  for (let i = 0; i < 2_000; i++) {
    const bytes = random(random(1)[0]! % 80);
    if (i % 2 === 0 && bytes.length > 1) bytes.set([i % 4 === 0 ? 2 : 0, 0x80 | (i & 4 ? 1 : 0)]);
    for (const decode of [decodePcpMap, isPcpRefusal, decodeNatPmp, isNatPmp]) decode(bytes);
  }
});

describe('an epoch', () => {
  const lost = (...answers: [server: number, seconds: number][]): boolean[] => {
    const epoch = new Epoch();
    return answers.map(([server, seconds]) => epoch.isLost(server, seconds * 1000));
  };

  test('that advances with time, slower or faster by up to a sixteenth, is the same', () => {
    expect(lost([100, 0], [100, 1], [1100, 1001], [2038, 2001], [3100, 3001], [3099, 3001])).toEqual(new Array(6).fill(false));
  });

  test('that goes back, stands still or jumps means a restart', () => {
    expect(lost([100, 0], [98, 1])).toEqual([false, true]);
    expect(lost([100, 0], [100, 100])).toEqual([false, true]);
    expect(lost([100, 0], [5000, 100])).toEqual([false, true]);
    expect(lost([100, 0], [0, 1000], [1000, 2000])).toEqual([false, true, false]);
  });
});
