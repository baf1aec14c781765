/** What the test vectors start from: keys, secrets, names and numbers that nothing else uses. */
import type { DataParameters } from '../../bindings/index.ts';
import { nativeCrypto } from '../../platform/node/crypto.ts';
import type { CryptoProvider, PrivateKey } from '../../protocol/crypto-provider.ts';

/** Node's cryptography without randomness. */
export const crypto = fixedCrypto([]);

/** Node's cryptography, whose random bytes are these, in their order. */
export function fixedCrypto(random: readonly Uint8Array[]): CryptoProvider {
  const left = [...random];
  return nativeCrypto((length) => {
    const next = left.shift();
    if (next?.length !== length) throw new Error(`no ${length} random bytes are named`);
    return next.slice();
  });
}

/** `length` bytes that count up from `first`. */
export function counting(first: number, length = 32): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => first + index);
}

const key = (first: number): PrivateKey => crypto.importKey(counting(first));

export const names = { productId: 'pr-1', deviceId: 'de-1', responder: 'device:pr-1.de-1' } as const;

export const initiator = {
  static: key(0x10),
  ephemeral: key(0x30),
  resetSecret: counting(0x50),
  /** Upper half of its connection id. */
  word: 0x0000_0102,
} as const;

export const responder = {
  static: key(0x70),
  ephemeral: key(0x90),
  resetSecret: counting(0xb0),
  word: 0x0000_0304,
} as const;

export const station = { resetSecret: counting(0xd0), routeRandom: Uint8Array.of(0x0a, 0x0b, 0x0c, 0x0d) } as const;

/** What a Retry token is bound to, and when it was made: s. */
export const retry = { secret: counting(0x08), time: 1_000, address: '192.0.2.1', port: 49_152 } as const;

/** Of the responder, a device. */
export const parameters: DataParameters = {
  idleTimeout: 180_000,
  maxUdpPayload: 1_452,
  initialMaxData: 1_048_576,
  initialMaxStreamData: 16_384,
  maxStreams: 64,
  maxMessages: 256,
  maxAckDelay: 25,
  maxDatagram: 65_527,
};

/** Of the initiator, a client: it takes no byte streams. */
export const initiatorParameters: DataParameters = { ...parameters, maxStreams: 0 };

export const password = {
  text: 'correct horse',
  salt: counting(0xa0, 16),
  run: 1,
  username: 'ada',
  deviceScalar: scalar(0x01),
  clientScalar: scalar(0x81),
} as const;

/** Below 2^252, little-endian. */
function scalar(first: number): Uint8Array {
  const bytes = counting(first);
  bytes[31]! &= 0x0f;
  return bytes;
}
