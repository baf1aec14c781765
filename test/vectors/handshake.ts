/** Test vectors of identities, ids and the handshake (PROTOCOL.md §1 to §3), made by `protocol/`. */
import { Core } from '../../bindings/index.ts';
import { encode } from '../../protocol/cbor/index.ts';
import type { CryptoProvider, PrivateKey } from '../../protocol/crypto-provider.ts';
import { Ids } from '../../protocol/endpoint/ids.ts';
import { prologue, SUITES, VERSIONS } from '../../protocol/endpoint/negotiation.ts';
import { encodeInitiatorOffer, encodeResponderOffer } from '../../protocol/endpoint/parameters.ts';
import { Resets } from '../../protocol/endpoint/reset.ts';
import { fingerprint } from '../../protocol/identity/index.ts';
import { HandshakeState, type TrafficKeys, XX } from '../../protocol/noise/index.ts';
import { encodeComplete, encodeInitiate, encodeRespond, mac1Key, SUITE, VERSION, writeU32 } from '../../protocol/packet/index.ts';
import { crypto, fixedCrypto, initiator, initiatorParameters, names, parameters, responder } from './inputs.ts';
import type { Section } from './values.ts';

const MAC1_AT = 13;
const MAC1_LENGTH = 16;
const NOTHING = new Uint8Array(0);

/** One finished handshake, and the sections that show it. */
export interface HandshakeVectors {
  readonly sections: readonly Section[];
  readonly core: Core;
  readonly initiatorId: Uint8Array;
  readonly responderId: Uint8Array;
  /** As the initiator has them. */
  readonly keys: TrafficKeys;
  readonly hash: Uint8Array;
  readonly noiseMessage1: Uint8Array;
  readonly complete: Uint8Array;
}

/** Runs the handshake. The other end reads each message, so an invalid message is an error here. */
export function handshakeVectors(): HandshakeVectors {
  const core = Core.create({ memory: 2 << 20 });
  const initiatorId = connectionId(initiator);
  const responderId = connectionId(responder);
  const spy = chainingKeys();
  const ours = state(core, true, initiator, spy.crypto);
  const theirs = state(core, false, responder, crypto);

  const noiseMessage1 = ours.writeMessage(NOTHING);
  const fields = { version: VERSION, suite: SUITE, source: initiatorId, token: NOTHING, message: noiseMessage1 };
  const initiate = encodeInitiate(crypto, mac1Key(crypto, names.responder), fields);
  const hash1 = ours.hash;
  held(theirs.readMessage(noiseMessage1));

  const payload2 = responderPayload(responderId);
  const message2 = theirs.writeMessage(payload2);
  held(ours.readMessage(message2));
  const hash2 = ours.hash;

  const payload3 = initiatorPayload(initiatorId);
  const message3 = ours.writeMessage(payload3);
  held(theirs.readMessage(message3));
  const complete = encodeComplete({ destination: responderId, message: message3 });
  const [ck1, ck2, ck3] = spy.found as [Uint8Array, Uint8Array, Uint8Array];
  const keys = ours.trafficKeys();
  const { hash } = ours;

  const sections: Section[] = [
    identitySection(),
    idSection(initiatorId, responderId),
    {
      title: 'Initiate',
      values: {
        'mac1 key': mac1Key(crypto, names.responder),
        mac1: initiate.subarray(MAC1_AT, MAC1_AT + MAC1_LENGTH),
        'Noise message 1': noiseMessage1,
        Initiate: initiate,
        'h after message 1': hash1,
      },
    },
    {
      title: 'Respond',
      values: {
        'payload of message 2': payload2,
        'ck after ee': ck1,
        'ck after es': ck2,
        'Noise message 2': message2,
        Respond: encodeRespond({ destination: initiatorId, source: responderId, message: message2 }),
        'h after message 2': hash2,
      },
    },
    {
      title: 'Complete',
      values: {
        'payload of message 3': payload3,
        'ck after se': ck3,
        'Noise message 3': message3,
        Complete: complete,
        'h, the handshake hash': hash,
      },
    },
  ];
  return { sections, core, initiatorId, responderId, keys, hash, noiseMessage1, complete };
}

/** Full hex fingerprint of a key. */
export function fingerprintOf({ publicKey }: PrivateKey): string {
  return fingerprint(publicKey, crypto);
}

function identitySection(): Section {
  return {
    title: 'Keys and names',
    values: {
      'responder name': names.responder,
      'initiator static private key': initiator.static.export(),
      'initiator static public key': initiator.static.publicKey,
      'initiator fingerprint': fingerprintOf(initiator.static),
      'initiator ephemeral private key': initiator.ephemeral.export(),
      'initiator ephemeral public key': initiator.ephemeral.publicKey,
      'responder static private key': responder.static.export(),
      'responder static public key': responder.static.publicKey,
      'responder fingerprint': fingerprintOf(responder.static),
      'responder ephemeral private key': responder.ephemeral.export(),
      'responder ephemeral public key': responder.ephemeral.publicKey,
    },
  };
}

function idSection(initiatorId: Uint8Array, responderId: Uint8Array): Section {
  return {
    title: 'Connection ids and their reset tokens',
    values: {
      'initiator reset secret': initiator.resetSecret,
      'initiator word': word(initiator.word),
      'initiator id': initiatorId,
      'initiator reset token': resetToken(initiator.resetSecret, initiatorId),
      'responder reset secret': responder.resetSecret,
      'responder word': word(responder.word),
      'responder id': responderId,
      'responder reset token': resetToken(responder.resetSecret, responderId),
    },
  };
}

function responderPayload(id: Uint8Array): Uint8Array {
  const info = encode({ ProductId: names.productId, DeviceId: names.deviceId });
  return encodeResponderOffer({ parameters, flowParts: 64, id, resetToken: resetToken(responder.resetSecret, id) }, info);
}

function initiatorPayload(id: Uint8Array): Uint8Array {
  const token = resetToken(initiator.resetSecret, id);
  return encodeInitiatorOffer({
    parameters: initiatorParameters,
    flowParts: 64,
    id,
    resetToken: token,
    versions: VERSIONS,
    suites: SUITES,
  });
}

/** The first id of a table of two whose generation begins just before the word. */
function connectionId({ resetSecret, word }: { resetSecret: Uint8Array; word: number }): Uint8Array {
  const generation = new Uint8Array(4);
  writeU32(generation, 0, word - 2);
  let made: Uint8Array | undefined;
  new Ids<object>(fixedCrypto([generation]), resetSecret, 1).allocate((id) => {
    made = id;
    return {};
  });
  return made!;
}

function resetToken(secret: Uint8Array, id: Uint8Array): Uint8Array {
  return new Resets(crypto, secret).token(id);
}

function word(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  writeU32(bytes, 0, value);
  return bytes;
}

function state(
  core: Core,
  isInitiator: boolean,
  end: { static: PrivateKey; ephemeral: PrivateKey },
  provider: CryptoProvider,
): HandshakeState {
  return new HandshakeState({
    pattern: XX,
    initiator: isInitiator,
    prologue: prologue(VERSION, SUITE, names.responder),
    crypto: provider,
    aead: core.aead,
    staticKey: end.static,
    ephemeral: end.ephemeral,
  });
}

/** A provider that records each chaining key: the first output of HKDF, which is the HMAC of the byte 1. */
function chainingKeys(): { crypto: CryptoProvider; found: Uint8Array[] } {
  const found: Uint8Array[] = [];
  const hmacSha256: CryptoProvider['hmacSha256'] = (key, ...parts) => {
    const code = crypto.hmacSha256(key, ...parts);
    if (parts.length === 1 && parts[0]!.length === 1) found.push(code.slice());
    return code;
  };
  return { crypto: { ...crypto, hmacSha256 }, found };
}

function held(payload: Uint8Array | null): void {
  if (payload === null) throw new Error('a message of the handshake does not hold');
}
