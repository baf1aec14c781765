/** The Noise state machine against the published vectors, over both crypto providers. */
import { hex } from '@scure/base';
import { describe, expect, it } from 'vitest';
import type { CryptoProvider } from '../../../protocol/crypto-provider.ts';
import { CipherState } from '../../../protocol/noise/cipher-state.ts';
import { HandshakeState, type Pattern, XX } from '../../../protocol/noise/index.ts';
import { SymmetricState } from '../../../protocol/noise/symmetric-state.ts';
import { hosts, nativeHost, nobleAead } from '../../support/crypto.ts';
import { keys, patterns, payloads, vectors } from './vectors.ts';

const table: readonly Pattern[] = [XX, ...patterns];
const aead = nobleAead;
const prologue = hex.decode(keys.prologue);

describe.each(hosts)('Noise vectors over %s crypto', (_, host) => {
  it.each(table.map((pattern) => [pattern.name, pattern] as const))('%s_25519_ChaChaPoly_SHA256', (name, pattern) => {
    const [initiator, responder] = pair(pattern, host(1));
    const vector = vectors[name]!;
    let sender = initiator;
    let receiver = responder;
    for (let i = 0; i < pattern.messages.length; i++) {
      const message = sender.writeMessage(hex.decode(payloads[i]!));
      expect(hex.encode(message)).toBe(vector.messages[i]);
      expect(hex.encode(receiver.readMessage(message)!)).toBe(payloads[i]);
      [sender, receiver] = [receiver, sender];
    }
    expect(hex.encode(initiator.hash)).toBe(vector.hash);
    expect(hex.encode(responder.hash)).toBe(vector.hash);
    const nonces = { send: new Map<HandshakeState, number>() };
    for (let i = pattern.messages.length; i < payloads.length; i++) {
      const nonce = nonces.send.get(sender) ?? 0;
      nonces.send.set(sender, nonce + 1);
      const sealed = aead.seal(sender.trafficKeys().send, nonce, new Uint8Array(0), hex.decode(payloads[i]!));
      expect(hex.encode(sealed)).toBe(vector.messages[i]);
      expect(hex.encode(aead.open(receiver.trafficKeys().receive, nonce, new Uint8Array(0), sealed)!)).toBe(payloads[i]);
      [sender, receiver] = [receiver, sender];
    }
  });
});

describe('a message that does not decrypt', () => {
  const key = new Uint8Array(32).fill(1);
  const sealed = () => new CipherState(aead, key.slice()).encryptWithAd(prologue, Uint8Array.of(1));

  it('leaves the nonce of a cipher unchanged', () => {
    const cipher = new CipherState(aead, key.slice());
    expect(cipher.decryptWithAd(prologue, new Uint8Array(17))).toBeNull();
    expect(cipher.decryptWithAd(prologue, sealed())).toEqual(Uint8Array.of(1));
  });

  it('leaves the handshake hash unchanged', () => {
    const state = SymmetricState.initialize(nativeHost(1), aead, 'name');
    state.mixKey(key);
    const { hash } = state;
    expect(state.decryptAndHash(new Uint8Array(17))).toBeNull();
    expect(state.hash).toEqual(hash);
  });

  it('is every message once the key is wiped', () => {
    const raw = key.slice();
    const cipher = new CipherState(aead, raw);
    cipher.wipe();
    expect([raw, cipher.hasKey]).toEqual([new Uint8Array(32), false]);
  });
});

describe('HandshakeState', () => {
  it('derives matching keys at both ends, different for each direction', () => {
    const [initiator, responder] = finished();
    const ours = initiator.trafficKeys();
    const theirs = responder.trafficKeys();
    expect([ours.send, ours.receive, ours.sendMask, ours.receiveMask]).toEqual([
      theirs.receive,
      theirs.send,
      theirs.receiveMask,
      theirs.sendMask,
    ]);
    expect(new Set([ours.send, ours.receive, ours.sendMask, ours.receiveMask].map((key) => hex.encode(key))).size).toBe(4);
  });

  it('is unchanged by every damaged, shortened or lengthened message, and then accepts the valid one', () => {
    const [initiator, responder] = pair(XX, nativeHost(2));
    expect(responder.readMessage(initiator.writeMessage(new Uint8Array(0)))).not.toBeNull();
    const second = responder.writeMessage(Uint8Array.of(1, 2, 3));
    for (let i = 0; i < second.length; i++) {
      const damaged = second.slice();
      damaged[i]! ^= 0x01;
      expect(initiator.readMessage(damaged), `byte ${i}`).toBeNull();
      expect(initiator.readMessage(second.subarray(0, i)), `cut to ${i}`).toBeNull();
    }
    expect(initiator.readMessage(Uint8Array.of(...second, 0))).toBeNull();
    expect(initiator.remoteStatic).toBeUndefined();
    expect(initiator.readMessage(second)).toEqual(Uint8Array.of(1, 2, 3));
    const third = initiator.writeMessage(Uint8Array.of(9));
    // The second change damages only the payload: the static key before it decrypts.
    for (const at of [5, third.length - 1]) {
      expect(responder.readMessage(third.with(at, third[at]! ^ 0x80))).toBeNull();
      expect(responder.remoteStatic).toBeUndefined();
    }
    expect(responder.readMessage(third)).toEqual(Uint8Array.of(9));
    expect(responder.remoteStatic).toEqual(hex.decode(keys.initiatorStaticPublic));
  });

  it.each([
    ['zero', '0000000000000000000000000000000000000000000000000000000000000000'],
    ['one', '0100000000000000000000000000000000000000000000000000000000000000'],
    ['order 8', 'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800'],
    ['order 8, the other', '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157'],
    ['p - 1', 'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f'],
    ['p', 'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f'],
    ['2^255 - 1', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f'],
    ['top bit set', '09000000000000000000000000000000000000000000000000000000000000ff'],
  ])('refuses the ephemeral key %s', (_, key) => {
    for (const [, host] of hosts) {
      const [initiator, responder] = pair(XX, host(3));
      const first = responder.readMessage(hex.decode(key));
      if (first === null) continue;
      // A key of low order gives a shared secret of zeros: the responder cannot answer.
      expect(() => responder.writeMessage(new Uint8Array(0))).toThrow(TypeError);
      initiator.writeMessage(new Uint8Array(0));
      expect(initiator.readMessage(Uint8Array.of(...hex.decode(key), ...new Uint8Array(64)))).toBeNull();
    }
  });

  it.each(hosts)('refuses a static key that is not canonical over %s crypto', (_, host) => {
    const crypto = host(6);
    const common = { pattern: XX, prologue, crypto, aead };
    const key = crypto.generateKey();
    // X25519 ignores the top bit, so every shared secret is right: only the encoding is wrong.
    const staticKey = { ...key, publicKey: key.publicKey.with(31, key.publicKey[31]! | 0x80), diffieHellman: key.diffieHellman.bind(key) };
    for (const initiates of [true, false]) {
      const initiator = new HandshakeState({ ...common, initiator: true, staticKey: initiates ? staticKey : crypto.generateKey() });
      const responder = new HandshakeState({ ...common, initiator: false, staticKey: initiates ? crypto.generateKey() : staticKey });
      responder.readMessage(initiator.writeMessage(new Uint8Array(0)));
      const second = initiator.readMessage(responder.writeMessage(new Uint8Array(0)));
      const last = initiates ? responder.readMessage(initiator.writeMessage(new Uint8Array(0))) : second;
      expect(last).toBeNull();
      expect((initiates ? responder : initiator).remoteStatic).toBeUndefined();
    }
  });

  it('refuses a shared secret of zeros that the crypto provider accepted', () => {
    const crypto = nativeHost(7);
    const key = crypto.generateKey();
    const careless = { ...key, publicKey: key.publicKey, diffieHellman: () => new Uint8Array(32) };
    const common = { pattern: XX, prologue, crypto, aead };
    const initiator = new HandshakeState({ ...common, initiator: true, staticKey: crypto.generateKey() });
    const responder = new HandshakeState({ ...common, initiator: false, staticKey: careless });
    responder.readMessage(initiator.writeMessage(new Uint8Array(0)));
    expect(() => responder.writeMessage(new Uint8Array(0))).toThrow(TypeError);
  });

  it('binds the prologue', () => {
    const crypto = nativeHost(4);
    const [initiator] = pair(XX, crypto);
    const other = new HandshakeState({
      pattern: XX,
      initiator: false,
      prologue: Uint8Array.of(1),
      crypto,
      aead,
      staticKey: crypto.generateKey(),
    });
    other.readMessage(initiator.writeMessage(new Uint8Array(0)));
    expect(initiator.readMessage(other.writeMessage(new Uint8Array(0)))).toBeNull();
  });

  it('cannot write past the end and forgets its secrets when wiped', () => {
    const [initiator] = finished();
    expect(() => initiator.writeMessage(new Uint8Array(0))).toThrow(TypeError);
    const before = initiator.trafficKeys();
    const hash = hex.encode(initiator.hash);
    initiator.wipe();
    expect(initiator.trafficKeys().send).not.toEqual(before.send);
    expect(hex.encode(initiator.hash)).toBe(hash);
  });
});

function pair(pattern: Pattern, crypto: CryptoProvider): [HandshakeState, HandshakeState] {
  const key = (raw: string) => crypto.importKey(hex.decode(raw));
  const common = { pattern, prologue, crypto, aead };
  return [
    new HandshakeState({
      ...common,
      initiator: true,
      staticKey: key(keys.initiatorStatic),
      ephemeral: key(keys.initiatorEphemeral),
      ...(pattern.known.responder ? { remoteStatic: hex.decode(keys.responderStaticPublic) } : {}),
    }),
    new HandshakeState({
      ...common,
      initiator: false,
      staticKey: key(keys.responderStatic),
      ephemeral: key(keys.responderEphemeral),
      ...(pattern.known.initiator ? { remoteStatic: hex.decode(keys.initiatorStaticPublic) } : {}),
    }),
  ];
}

function finished(): [HandshakeState, HandshakeState] {
  const [initiator, responder] = pair(XX, nativeHost(5));
  responder.readMessage(initiator.writeMessage(new Uint8Array(0)));
  initiator.readMessage(responder.writeMessage(new Uint8Array(0)));
  responder.readMessage(initiator.writeMessage(new Uint8Array(0)));
  return [initiator, responder];
}
