/** The exchange, bound to a connection: it succeeds only if both ends have equal inputs. */
import { scryptSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { nodeCrypto } from '../../../platform/node/crypto.ts';
import { RemoteError } from '../../../protocol/errors/index.ts';
import * as password from '../../../protocol/password/index.ts';
import { hosts, nativeHost } from '../../support/crypto.ts';

const CHEAP = { N: 16, r: 8, p: 1 };
const crypto = nativeHost(1);
const binding: password.PasswordBinding = {
  handshakeHash: crypto.randomBytes(32),
  run: 1,
  clientFingerprint: 'aa'.repeat(32),
  deviceFingerprint: 'bb'.repeat(32),
  productId: 'pr-1',
  deviceId: 'de-1',
  username: 'owner',
};
const value = new TextEncoder().encode('correct horse');

interface Side {
  readonly binding?: Partial<password.PasswordBinding>;
  readonly kdf?: password.Kdf;
  readonly value?: Uint8Array;
}

/** Returns whether the device accepts the client, and then whether the client accepts the device. */
function exchange(client: Side = {}, device: Side = {}): [boolean, boolean] {
  const end = (side: Side) => [{ ...binding, ...side.binding }, side.kdf ?? 0, side.value ?? value] as const;
  const atDevice = new password.DeviceRun(crypto, ...end(device));
  const atClient = password.ClientRun.answer(crypto, ...end(client), atDevice.share)!;
  const tag = atDevice.confirm(atClient.proof);
  return [tag instanceof Uint8Array, tag instanceof Uint8Array && atClient.verify(tag)];
}

describe('an exchange', () => {
  it('succeeds when both ends have equal inputs', () => {
    expect(exchange()).toEqual([true, true]);
  });

  it.each<[string, Side]>([
    ['another password', { value: new TextEncoder().encode('wrong') }],
    ['the same value under another Kdf', { kdf: 1 }],
    ['another handshake: an attacker in between', { binding: { handshakeHash: new Uint8Array(32) } }],
    ['another run', { binding: { run: 2 } }],
    ['another client', { binding: { clientFingerprint: 'cc'.repeat(32) } }],
    ['another device', { binding: { deviceFingerprint: 'cc'.repeat(32) } }],
    ['another product id', { binding: { productId: 'pr-2' } }],
    ['another device id', { binding: { deviceId: 'de-2' } }],
    ['ids that are only equal when concatenated', { binding: { productId: 'pr-', deviceId: '1de-1' } }],
    ['another user', { binding: { username: 'guest' } }],
  ])('fails with %s', (_, client) => {
    expect(exchange(client)).toEqual([false, false]);
  });

  it('fails at either end when a bit of the tag is flipped', () => {
    const device = new password.DeviceRun(crypto, binding, 0, value);
    const client = password.ClientRun.answer(crypto, binding, 0, value, device.share)!;
    const damaged = client.proof.tag.slice();
    damaged[63]! ^= 1;
    expect(device.confirm({ share: client.proof.share, tag: damaged })).toBe(null);
    expect(client.verify(client.proof.tag)).toBe(false);
  });

  it("refuses a device that returns the client's own share and tag", () => {
    const device = new password.DeviceRun(crypto, binding, 0, value);
    const client = password.ClientRun.answer(crypto, binding, 0, value, device.share)!;
    const again = password.ClientRun.answer(crypto, binding, 0, value, client.proof.share)!;
    expect(again.verify(client.proof.tag)).toBe(false);
  });

  it('is ended at both ends by an invalid share', () => {
    const zero = new Uint8Array(32);
    const device = new password.DeviceRun(crypto, binding, 0, value);
    expect(device.confirm({ share: zero, tag: new Uint8Array(64) })).toBe(undefined);
    expect(password.ClientRun.answer(crypto, binding, 0, value, zero)).toBe(null);
  });

  it('does not wipe the password value, which belongs to the caller', () => {
    const mine = value.slice();
    new password.DeviceRun(crypto, binding, 0, mine);
    expect(mine).toEqual(value);
  });
});

describe('strings that must be equal at both ends (PROTOCOL.md §8)', () => {
  it('session id', () => {
    const expected = crypto.sha256(binding.handshakeHash, Uint8Array.of(0, 1, 2, 3));
    expect(password.sessionId(crypto, { ...binding, run: 0x010203 })).toEqual(expected);
  });

  it('channel identifier', () => {
    const bytes = [
      3,
      ...ascii('svc'),
      32,
      ...fill(0xaa),
      32,
      ...fill(0xbb),
      4,
      ...ascii('pr-1'),
      4,
      ...ascii('de-1'),
      5,
      ...ascii('owner'),
    ];
    expect(password.channelIdentifier(binding)).toEqual(Uint8Array.from(bytes));
  });

  it('password-related string', () => {
    expect(password.passwordString(1, Uint8Array.of(7, 8))).toEqual(Uint8Array.of(1, 1, 2, 7, 8));
  });
});

describe('passwords', () => {
  it.each([
    ['empty', ''],
    ['too long', 'ä'.repeat(513)],
  ])('are refused: %s', (_, secret) => {
    expect(() => password.passwordBytes(secret)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  it('have a verifier that is scrypt (RFC 7914) at the real cost, and equals what the client derives', { tags: ['slow'] }, async () => {
    const verifier = await password.makeVerifier(nodeCrypto, 'secret');
    expect(password.SCRYPT_COST).toEqual({ N: 16_384, r: 8, p: 1 });
    expect(verifier.salt.length).toBe(16);
    expect(verifier.value).toEqual(new Uint8Array(scryptSync('secret', verifier.salt, 32, { N: 16_384, r: 8, p: 1 })));
    expect(await password.deriveValue(nodeCrypto, new TextEncoder().encode('secret'), verifier.salt)).toEqual(verifier.value);
  });

  it('each have a different salt', async () => {
    const [a, b] = [await password.makeVerifier(crypto, 'same', CHEAP), await password.makeVerifier(crypto, 'same', CHEAP)];
    expect(a.salt).not.toEqual(b.salt);
    expect(a.value).not.toEqual(b.value);
  });

  it.each(hosts)('use scrypt as in RFC 7914 §12, on %s', { tags: ['slow'] }, async (_, host) => {
    const text = (secret: string) => new TextEncoder().encode(secret);
    const derived = await host(1).scrypt(text('password'), text('NaCl'), { N: 1024, r: 8, p: 16 }, 64);
    expect(Buffer.from(derived).toString('hex')).toBe(
      'fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b3731622eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640',
    );
  });
});

describe('messages', () => {
  const share = new Uint8Array(32).fill(1);
  const tag = new Uint8Array(64).fill(2);
  const salt = new Uint8Array(16).fill(3);

  it.each([
    ['plain', { kdf: 0, salt: null, run: 1, share }],
    ['with salt', { kdf: 1, salt, run: 0xffff_ffff, share }],
  ] as const)('survive a round trip: offer %s', (_, offer) => {
    expect(password.decodePasswordOffer(password.encodePasswordOffer(offer))).toEqual(offer);
  });

  it('survive a round trip: all others', () => {
    expect(password.decodePasswordRequest(password.encodePasswordRequest({ username: '' }))).toEqual({ username: '' });
    expect(password.decodePasswordProof(password.encodePasswordProof({ share, tag }))).toEqual({ share, tag });
    expect(password.decodePasswordConfirmation(password.encodePasswordConfirmation({ tag }))).toEqual({ tag });
  });

  it.each([
    ['a salt with Kdf 0', { kdf: 0, salt, run: 1, share }],
    ['no salt with Kdf 1', { kdf: 1, salt: null, run: 1, share }],
    ['an unknown Kdf', { kdf: 2 as never, salt, run: 1, share }],
    ['run 0', { kdf: 0, salt: null, run: 0, share }],
    ['a short share', { kdf: 0, salt: null, run: 1, share: share.subarray(1) }],
    ['a long salt', { kdf: 1, salt: new Uint8Array(17), run: 1, share }],
  ] as const)('are refused: an offer with %s', (_, offer) => {
    expect(() => password.decodePasswordOffer(password.encodePasswordOffer(offer))).toThrow(RemoteError);
  });

  it('are refused: a user name above 255 bytes', () => {
    expect(() => password.decodePasswordRequest(password.encodePasswordRequest({ username: 'ä'.repeat(128) }))).toThrow(RemoteError);
  });
});

function ascii(letters: string): number[] {
  return [...letters].map((letter) => letter.charCodeAt(0));
}

function fill(byte: number): number[] {
  return Array.from({ length: 32 }, () => byte);
}
