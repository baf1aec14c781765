/**
 * CPace against the published vectors (draft-irtf-cfrg-cpace-21, appendices A and B.3, ristretto255 with SHA-512), and
 * against a second implementation.
 */

import { concatBytes } from '@noble/hashes/utils.js';
import { hex } from '@scure/base';
import { describe, expect, it } from 'vitest';
import * as cpace from '../../../protocol/password/index.ts';
import { seededBytes } from '../../support/crypto.ts';
import { isElement, referenceRun } from './reference.ts';

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const group = cpace.ristretto255Group;

const vector = {
  prs: utf8('Password'),
  ci: hex.decode('0b415f696e69746961746f720b425f726573706f6e646572'),
  sid: hex.decode('7e4b4791d6a8ef019b936c79fb7f2c57'),
  generator: '222b6b195fe84b1652badb6f6a3ae3d24341e7306967f0b8115b40d5698c7e56',
  a: { scalar: hex.decode('da3d23700a9e5699258aef94dc060dfda5ebb61f02a5ea77fad53f4ff0976d08'), ad: utf8('ADa') },
  b: { scalar: hex.decode('d2316b454718c35362d83d69df6320f38578ed5984651435e2949762d900b80d'), ad: utf8('ADb') },
  ya: 'd6bac480f2c386c394efc7c47adb9925dcd2630b64f240c50f8d0eec482b9157',
  yb: '3ea7e0b19560d7c0b0f5734f63b955286dfa8232b5ebe63324e2d9e7433f7258',
  secret: '80b69a8a76457ab6a4d7f887a4bf6b55a2f80ac19c333f917a05fc9887c8b40f',
  isk: 'b69effbf61b51d56401c0f65601abe428de8206feaaf0e32198896dcae7b35cd2b38950a39dfd5d4a79164614c2984f7daa460b588c1e80c3fa2068af7900447',
  iskSymmetric:
    '544199d71f62f8d9a1fee55727e24fe4a45844593c2b6013c4fa3969d0e5debb2244675c0b43397cbb68d342b01fc0f98fc961469a25134de9f0f813c1a57476',
};

describe('strings of the draft', () => {
  it.each([
    ['', '00'],
    ['1234', '0431323334'],
    ['\0'.repeat(127), `7f${'00'.repeat(127)}`],
    ['\0'.repeat(128), `8001${'00'.repeat(128)}`],
    ['\0'.repeat(300), `ac02${'00'.repeat(300)}`],
  ])('lv_cat of %j alone, its prepend_len', (text, expected) => {
    expect(hex.encode(cpace.lvCat(utf8(text)))).toBe(expected);
  });

  it('lv_cat', () => {
    expect(hex.encode(cpace.lvCat(utf8('1234'), utf8('5'), utf8(''), utf8('678')))).toBe('043132333401350003363738');
  });

  it('generator_string fills one block with the password, and has no padding for a long one', () => {
    const string = cpace.generatorString(utf8(group.dsi), vector.prs, vector.ci, vector.sid, 128);
    expect(hex.encode(string)).toBe(
      `11435061636552697374726574746f3235350850617373776f726464${'00'.repeat(100)}180b415f696e69746961746f720b425f726573706f6e646572107e4b4791d6a8ef019b936c79fb7f2c57`,
    );
    const long = cpace.generatorString(utf8(group.dsi), new Uint8Array(500), vector.ci, vector.sid, 128);
    expect(long.length).toBe(18 + 502 + 1 + 25 + 17);
  });
});

describe('CPACE-RISTR255-SHA512, appendix B.3', () => {
  it('generator, B.3.1', () => {
    expect(hex.encode(cpace.calculateGenerator(group, vector))).toBe(vector.generator);
  });

  it('shares and secret, B.3.2 to B.3.4', () => {
    const generator = hex.decode(vector.generator);
    expect(hex.encode(group.scalarMult(vector.a.scalar, generator))).toBe(vector.ya);
    expect(hex.encode(group.scalarMult(vector.b.scalar, generator))).toBe(vector.yb);
    expect(hex.encode(group.scalarMultVfy(vector.a.scalar, hex.decode(vector.yb))!)).toBe(vector.secret);
    expect(hex.encode(group.scalarMultVfy(vector.b.scalar, hex.decode(vector.ya))!)).toBe(vector.secret);
  });

  it('intermediate session key of initiator and responder, B.3.5', () => {
    const [a, b] = [
      { share: hex.decode(vector.ya), ad: vector.a.ad },
      { share: hex.decode(vector.yb), ad: vector.b.ad },
    ];
    expect(hex.encode(cpace.intermediateKey(group, vector.sid, hex.decode(vector.secret), a, b))).toBe(vector.isk);
  });

  it('intermediate session key of the symmetric mode, B.3.6, from the same parts', async () => {
    const { createHash } = await import('node:crypto');
    const [a, b] = [cpace.lvCat(hex.decode(vector.ya), vector.a.ad), cpace.lvCat(hex.decode(vector.yb), vector.b.ad)];
    const ordered = Buffer.compare(a, b) > 0 ? [a, b] : [b, a];
    const head = cpace.lvCat(utf8(`${group.dsi}_ISK`), vector.sid, hex.decode(vector.secret));
    const string = concatBytes(head, utf8('oc'), ...ordered);
    expect(createHash('sha512').update(string).digest('hex')).toBe(vector.iskSymmetric);
  });

  it('scalar_mult with valid input, B.3.10', () => {
    const scalar = hex.decode('7cd0e075fa7955ba52c02759a6c90dbbfc10e6d40aea8d283e407d88cf538a05');
    const element = hex.decode('2c3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c');
    const product = '7c13645fe790a468f62c39beb7388e541d8405d1ade69d1778c5fe3e7f6b600e';
    expect(hex.encode(group.scalarMult(scalar, element))).toBe(product);
    expect(hex.encode(group.scalarMultVfy(scalar, element)!)).toBe(product);
  });

  it.each([
    ['no element', '2b3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c'],
    ['the neutral element', '00'.repeat(32)],
  ])('scalar_mult_vfy with invalid input, B.3.11: %s', (_, bytes) => {
    const scalar = hex.decode('7cd0e075fa7955ba52c02759a6c90dbbfc10e6d40aea8d283e407d88cf538a05');
    expect(group.scalarMultVfy(scalar, hex.decode(bytes))).toBe(null);
    for (const role of ['initiator', 'responder'] as const) {
      const party = cpace.CpaceParty.start(group, role, vector, utf8('x'), scalar.slice());
      expect(party.finish({ share: hex.decode(bytes), ad: utf8('y') })).toBe(null);
    }
  });
});

describe('a CPace run', () => {
  it('agrees with the second implementation in shares and tags, for the vector and random inputs', { tags: ['slow'] }, () => {
    const random = seededBytes(7);
    const runs = Array.from({ length: 3 }, () => ({
      prs: random(9),
      ci: random(40),
      sid: random(32),
      a: { scalar: group.sampleScalar(random), ad: random(3) },
      b: { scalar: group.sampleScalar(random), ad: random(5) },
    }));
    for (const inputs of [vector, ...runs]) {
      const expected = referenceRun(inputs);
      const a = cpace.CpaceParty.start(group, 'initiator', inputs, inputs.a.ad, inputs.a.scalar.slice());
      const b = cpace.CpaceParty.start(group, 'responder', inputs, inputs.b.ad, inputs.b.scalar.slice());
      expect([a.share, b.share]).toEqual([expected.ya, expected.yb]);
      expect(a.finish({ share: b.share, ad: inputs.b.ad })).toEqual({ own: expected.ta, expected: expected.tb });
      expect(b.finish({ share: a.share, ad: inputs.a.ad })).toEqual({ own: expected.tb, expected: expected.ta });
    }
    const published = referenceRun(vector);
    expect([published.generator, published.ya, published.yb, published.secret, published.isk].map((part) => hex.encode(part))).toEqual([
      vector.generator,
      vector.ya,
      vector.yb,
      vector.secret,
      vector.isk,
    ]);
  });

  it('accepts the same encodings of elements as RFC 9496', () => {
    const random = seededBytes(8);
    const scalar = group.sampleScalar(random);
    let elements = 0;
    for (let i = 0; i < 64; i++) {
      const candidate = random(32);
      candidate[0]! &= 0xfe;
      candidate[31]! &= 0x7f;
      const taken = isElement(candidate);
      elements += Number(taken);
      expect(group.scalarMultVfy(scalar, candidate) !== null).toBe(taken);
    }
    expect(elements).toBeGreaterThan(4);
    expect(elements).toBeLessThan(40);
  });

  it('draws scalars below 2^252 that are not 0', () => {
    const drawn = [new Uint8Array(32), new Uint8Array(32).fill(0xff)];
    const scalar = group.sampleScalar(() => drawn.shift()!);
    expect(hex.encode(scalar)).toBe(`${'ff'.repeat(31)}0f`);
    expect(drawn).toEqual([]);
  });

  it('wipes its scalar when it is finished', () => {
    const scalar = vector.a.scalar.slice();
    const party = cpace.CpaceParty.start(group, 'initiator', vector, vector.a.ad, scalar);
    party.finish({ share: hex.decode(vector.yb), ad: vector.b.ad });
    expect(scalar).toEqual(new Uint8Array(32));
  });
});
