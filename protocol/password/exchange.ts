/**
 * A password exchange over one connection (PROTOCOL.md §8): CPace bound to the handshake, to both keys and to the
 * names, so that it succeeds only if client and device completed the same handshake with each other.
 *
 * The device is CPace's initiator: 1. its share, 2. the client's share and tag, 3. the device checks the tag, and only
 * then sends its own. So a client learns nothing from a run that it does not finish, and each finished run is one
 * guess, which the device can count.
 */
import { hex } from '@scure/base';
import type { CryptoProvider } from '../crypto-provider.ts';
import { equalBytes } from '../identity/index.ts';
import { type CpaceInputs, CpaceParty } from './cpace.ts';
import { ristretto255Group } from './group.ts';
import { type Kdf, passwordString } from './kdf.ts';
import type { PasswordProof } from './messages.ts';
import { lvCat } from './strings.ts';

const text = new TextEncoder();
/** Associated data of each end: a tag of one is never a valid tag of the other. */
const DEVICE = text.encode('device');
const CLIENT = text.encode('client');

/** The values that an exchange is bound to. */
export interface PasswordBinding {
  /** Noise handshake hash of the connection. */
  readonly handshakeHash: Uint8Array;
  /** Number of the run on this connection, 1 to 2^32 - 1. */
  readonly run: number;
  /** Full hex. */
  readonly clientFingerprint: string;
  /** Full hex. */
  readonly deviceFingerprint: string;
  readonly productId: string;
  readonly deviceId: string;
  readonly username: string;
}

type RunCrypto = Pick<CryptoProvider, 'sha256' | 'randomBytes'>;

/** Returns SHA-256 over the handshake hash and the number of the run. */
export function sessionId(crypto: Pick<CryptoProvider, 'sha256'>, { handshakeHash, run }: PasswordBinding): Uint8Array {
  return crypto.sha256(handshakeHash, Uint8Array.of(run >>> 24, run >>> 16, run >>> 8, run));
}

/** Returns the identifier of both ends and the user. */
export function channelIdentifier(binding: PasswordBinding): Uint8Array {
  const { clientFingerprint, deviceFingerprint, productId, deviceId, username } = binding;
  const names = [productId, deviceId, username].map((name) => text.encode(name));
  return lvCat(text.encode('svc'), hex.decode(clientFingerprint), hex.decode(deviceFingerprint), ...names);
}

/** The device's end of a run. */
export class DeviceRun {
  readonly #party: CpaceParty;

  /** @param value not kept */
  constructor(crypto: RunCrypto, binding: PasswordBinding, kdf: Kdf, value: Uint8Array) {
    const scalar = ristretto255Group.sampleScalar(crypto.randomBytes);
    this.#party = withInputs(crypto, binding, kdf, value, (inputs) =>
      CpaceParty.start(ristretto255Group, 'initiator', inputs, DEVICE, scalar),
    );
  }

  get share(): Uint8Array {
    return this.#party.share;
  }

  /** Returns the device's tag; null when the client's is wrong; undefined when its share is invalid. Call it once. */
  confirm({ share, tag }: PasswordProof): Uint8Array | null | undefined {
    const tags = this.#party.finish({ share, ad: CLIENT });
    if (tags === null) return undefined;
    const holds = equalBytes(tags.expected, tag);
    tags.expected.fill(0);
    return holds ? tags.own : null;
  }

  /** Ends a run that was not confirmed. */
  wipe(): void {
    this.#party.wipe();
  }
}

/** The client's end of a run. */
export class ClientRun {
  readonly proof: PasswordProof;
  readonly #expected: Uint8Array;

  private constructor(proof: PasswordProof, expected: Uint8Array) {
    this.proof = proof;
    this.#expected = expected;
  }

  /** Returns null when the device's share is invalid. @param value not kept */
  static answer(crypto: RunCrypto, binding: PasswordBinding, kdf: Kdf, value: Uint8Array, deviceShare: Uint8Array): ClientRun | null {
    const scalar = ristretto255Group.sampleScalar(crypto.randomBytes);
    const party = withInputs(crypto, binding, kdf, value, (inputs) =>
      CpaceParty.start(ristretto255Group, 'responder', inputs, CLIENT, scalar),
    );
    const tags = party.finish({ share: deviceShare, ad: DEVICE });
    return tags === null ? null : new ClientRun({ share: party.share, tag: tags.own }, tags.expected);
  }

  /** Returns whether the device's tag is valid. Call it once. */
  verify(tag: Uint8Array): boolean {
    const holds = equalBytes(this.#expected, tag);
    this.#expected.fill(0);
    return holds;
  }
}

function withInputs<T>(
  crypto: Pick<CryptoProvider, 'sha256'>,
  binding: PasswordBinding,
  kdf: Kdf,
  value: Uint8Array,
  run: (inputs: CpaceInputs) => T,
): T {
  const prs = passwordString(kdf, value);
  try {
    return run({ prs, ci: channelIdentifier(binding), sid: sessionId(crypto, binding) });
  } finally {
    prs.fill(0);
  }
}
