/** Bodies of the rendezvous: their names on the wire, and malformed ones. */
import { describe, expect, test } from 'vitest';
import { type CborValue, decode, encode } from '../../../protocol/cbor/index.ts';
import * as control from '../../../protocol/control/index.ts';
import { LocalError } from '../../../protocol/errors/index.ts';
import { parseError } from '../parse-error.ts';
import { type Body, type Codec, describeBodies } from './codec.ts';

const tag = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
const key = new Uint8Array(16).fill(7);
const v4 = Uint8Array.of(192, 0, 2, 1);
const v6 = Uint8Array.of(0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
const candidates = [
  { address: '192.0.2.1', port: 1, type: 'host' },
  { address: '2001:db8::1', port: 65_535, type: 'reflexive' },
  { address: '192.0.2.1', port: 50_000, type: 'mapped' },
] as const;
const wireCandidates = [
  { Ip: v4, Port: 1, Type: 0 },
  { Ip: v6, Port: 65_535, Type: 1 },
  { Ip: v4, Port: 50_000, Type: 2 },
];
const nat = { mapping: 'sequential', last: 40_000, stride: 65_535, age: 120 } as const;
const wireNat = { Mapping: 3, Last: 40_000, Stride: 65_535, Age: 120 };
const MOST = 2 ** 32 - 1;

const offer: Codec = { encode: control.encodeRendezvousOffer, decode: control.decodeRendezvousOffer };
const state: Codec = { encode: control.encodeRendezvousState, decode: control.decodeRendezvousState };
const update: Codec = { encode: control.encodeRendezvousUpdate, decode: control.decodeRendezvousUpdate };

const bareOffer = { Round: 1, Tag: tag, Key: key, Number: 1, Candidates: [] };
const bareState = { Tag: tag, Key: key, Number: 1, Candidates: [], Opened: 0 };
const bareUpdate = { Round: 1, Number: 1, Candidates: [], Opened: 0 };

const bodies: readonly Body<{ readonly [name: string]: CborValue }>[] = [
  [
    'offer',
    offer,
    { round: MOST, tag, key, number: MOST, candidates, nat },
    { Round: MOST, Tag: tag, Key: key, Number: MOST, Candidates: wireCandidates, Nat: wireNat },
  ],
  ['bare offer', offer, { round: 1, tag, key, number: 1, candidates: [] }, bareOffer],
  [
    'state',
    state,
    { tag, key, number: 2, candidates, nat: { mapping: 'unknown' }, opened: MOST },
    { Tag: tag, Key: key, Number: 2, Candidates: wireCandidates, Nat: { Mapping: 0 }, Opened: MOST },
  ],
  ['bare state', state, { tag, key, number: 1, candidates: [], opened: 0 }, bareState],
  [
    'update',
    update,
    { round: 1, number: 3, candidates, nat, opened: 2, spray: true },
    { Round: 1, Number: 3, Candidates: wireCandidates, Nat: wireNat, Opened: 2, Spray: true },
  ],
  ['bare update', update, { round: 1, number: 1, candidates: [], opened: 0 }, bareUpdate],
];

describeBodies(bodies);

describe.each(bodies)('%s', (_, codec, __, wire) => {
  test('requires every field but Nat and Spray', () => {
    for (const name of Object.keys(wire).filter((each) => each !== 'Nat' && each !== 'Spray')) {
      parseError(() => codec.decode(encode({ ...wire, [name]: null })));
    }
  });
});

test('each mapping has its number', () => {
  const mappings = ['unknown', 'none', 'independent', 'sequential', 'random'] as const;
  for (const [number, mapping] of mappings.entries()) {
    const payload = control.encodeRendezvousState({ tag, key, number: 1, candidates: [], nat: { mapping }, opened: 0 });
    expect(decode(payload)).toEqual({ ...bareState, Nat: { Mapping: number } });
    expect(control.decodeRendezvousState(payload).nat).toEqual({ mapping });
  }
});

describe('malformed bodies', () => {
  const candidate = { Ip: v4, Port: 1, Type: 0 };
  const list = (length: number) => Array.from({ length }, () => candidate);

  test('eight candidates are accepted, nine and 10,000 refused', { tags: ['slow'] }, () => {
    for (const { decode: read } of [offer, state, update]) {
      const body = (length: number) => encode({ ...bareOffer, ...bareState, ...bareUpdate, Candidates: list(length) });
      expect(read(body(control.MAX_CANDIDATES))).toMatchObject({ candidates: { length: 8 } });
      for (const length of [9, 10_000]) parseError(() => read(body(length)));
    }
  });

  test.each<[string, CborValue]>([
    ['port 0', { ...candidate, Port: 0 }],
    ['port 65,536', { ...candidate, Port: 65_536 }],
    ['no port', { Ip: v4, Type: 0 }],
    ['a port that is text', { ...candidate, Port: '1' }],
    ['an address of 5 bytes', { ...candidate, Ip: new Uint8Array(5) }],
    ['an address of 15 bytes', { ...candidate, Ip: new Uint8Array(15) }],
    ['an address of 17 bytes', { ...candidate, Ip: new Uint8Array(17) }],
    ['an empty address', { ...candidate, Ip: new Uint8Array(0) }],
    ['an address that is text', { ...candidate, Ip: '192.0.2.1' }],
    ['a fourth type', { ...candidate, Type: 3 }],
    ['no type', { Ip: v4, Port: 1 }],
    ['the type -1', { ...candidate, Type: -1 }],
    ['an array', [v4, 1, 0]],
    ['a number', 1],
    ['null', null],
  ])('a candidate with %s refuses the list', (_, bad) => {
    for (const [codec, bare] of [
      [offer, bareOffer],
      [state, bareState],
      [update, bareUpdate],
    ] as const) {
      parseError(() => codec.decode(encode({ ...bare, Candidates: [candidate, bad] })));
    }
  });

  test.each<[string, Codec, CborValue]>([
    ['a tag of 7 bytes', offer, { ...bareOffer, Tag: new Uint8Array(7) }],
    ['a key of 32 bytes', offer, { ...bareOffer, Key: new Uint8Array(32) }],
    ['a tag of 9 bytes', state, { ...bareState, Tag: new Uint8Array(9) }],
    ['an empty key', state, { ...bareState, Key: new Uint8Array(0) }],
    ['a round of 2^32', offer, { ...bareOffer, Round: 2 ** 32 }],
    ['a number of 2^32', update, { ...bareUpdate, Number: 2 ** 32 }],
    ['a negative number', state, { ...bareState, Number: -1 }],
    ['2^32 as opened', state, { ...bareState, Opened: 2 ** 32 }],
    ['2^32 as opened by the client', update, { ...bareUpdate, Opened: 2 ** 32 }],
    ['a fraction as round', update, { ...bareUpdate, Round: 1.5 }],
    ['candidates in a map', offer, { ...bareOffer, Candidates: {} }],
    ['spray as a number', update, { ...bareUpdate, Spray: 1 }],
    ['a NAT without a mapping', offer, { ...bareOffer, Nat: {} }],
    ['a sixth mapping', offer, { ...bareOffer, Nat: { Mapping: 5 } }],
    ['a NAT that is a number', state, { ...bareState, Nat: 3 }],
    ['a last port of 0', offer, { ...bareOffer, Nat: { ...wireNat, Last: 0 } }],
    ['a last port of 65,536', offer, { ...bareOffer, Nat: { ...wireNat, Last: 65_536 } }],
    ['a stride of 0', offer, { ...bareOffer, Nat: { ...wireNat, Stride: 0 } }],
    ['a stride of 65,536', offer, { ...bareOffer, Nat: { ...wireNat, Stride: 65_536 } }],
    ['an age of 2^32', offer, { ...bareOffer, Nat: { ...wireNat, Age: 2 ** 32 } }],
    ['a body that is not a map', update, []],
  ])('%s is refused', (_, codec, body) => {
    parseError(() => codec.decode(encode(body)));
  });

  test('encoding a name as a candidate is a local error', () => {
    const named = [{ address: 'localhost', port: 1, type: 'host' }] as const;
    expect(() => control.encodeRendezvousOffer({ round: 1, tag, key, number: 1, candidates: named })).toThrow(LocalError);
  });
});
