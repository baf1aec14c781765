/**
 * The vectors of docs/vectors.json a second time: the code of `decoder/`, which knows nothing of the implementation,
 * computes the vectors from the inputs that stand there. With any one value changed it computes something else.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { byLabel, read, type Value } from '../vectors/values.ts';
import { decodeMap } from './decoder/cbor.ts';
import { decodeCoap, pathOf } from './decoder/coap.ts';
import { inputsOf, run, scryptValue } from './decoder/cpace.ts';
import { fingerprint, hex, hkdf, join, maskOf, open, publicKeyOf, rekey, seal, sha256, u32, x25519 } from './decoder/crypto.ts';
import { Direction } from './decoder/direction.ts';
import { decodeFlowContent } from './decoder/flows.ts';
import { decodeFrames } from './decoder/frames.ts';
import { begin, encrypt, message1, mixHash, mixKey, readMessage2, readMessage3 } from './decoder/noise.ts';
import { type Data, decodePacket, mac1Of } from './decoder/packets.ts';
import { connectionId, resetToken, retryToken, routeId } from './decoder/tokens.ts';

const published = byLabel(read(readFileSync(new URL('../../docs/vectors.json', import.meta.url), 'utf8')));
/** What the checks compare with: the published vectors, or those with one value changed. */
let vectors = published;
/** Labels that were looked up since it was last cleared. */
const used = new Set<string>();

function value(label: string): Value {
  const found = vectors.get(label);
  if (found === undefined) throw new Error(`there is no vector "${label}"`);
  used.add(label);
  return found;
}
const bytes = (label: string): Buffer => Buffer.from(value(label) as Uint8Array);
const text = (label: string): string => value(label) as string;
const count = (label: string): number => value(label) as number;

/** The value of a label is this. */
function matches(label: string, computed: Uint8Array): void {
  expect(hex(computed), label).toBe(hex(bytes(label)));
}

const name = (): string => text('responder name');

/** The Noise state before and after each message, by the end that knows its own private keys. */
function handshake() {
  const [initiator, responder] = [bytes('initiator ephemeral private key'), bytes('responder ephemeral private key')];
  const afterMessage1 = message1(begin(1, 1, name()), publicKeyOf(initiator));
  const responderStatic = bytes('responder static private key');
  // The responder writes message 2: e, ee, s, es.
  const afterE = mixHash(afterMessage1, publicKeyOf(responder));
  const afterEe = mixKey(afterE, x25519(responder, publicKeyOf(initiator)));
  const [afterS, sealedStatic] = encrypt(afterEe, publicKeyOf(responderStatic));
  const afterEs = mixKey(afterS, x25519(responderStatic, publicKeyOf(initiator)));
  const [afterMessage2, sealedPayload] = encrypt(afterEs, bytes('payload of message 2'));
  const message2 = join(publicKeyOf(responder), sealedStatic, sealedPayload);
  // The initiator writes message 3: s, se.
  const initiatorStatic = bytes('initiator static private key');
  const [afterOwn, sealedOwn] = encrypt(afterMessage2, publicKeyOf(initiatorStatic));
  const afterSe = mixKey(afterOwn, x25519(initiatorStatic, publicKeyOf(responder)));
  const [state, sealedLast] = encrypt(afterSe, bytes('payload of message 3'));
  return { afterMessage1, afterEe, afterEs, afterMessage2, message2, afterSe, state, message3: join(sealedOwn, sealedLast) };
}

/** The keys that the handshake yields. */
function keys() {
  const { ck } = handshake().state;
  const [k1, k2] = hkdf(ck, '');
  const [m1, m2] = hkdf(ck, 'svc mask');
  return { k1, k2, m1, m2 };
}

/** A Data packet of frames. */
function dataPacket(frames: Uint8Array, { key, number, mask, id, phase = false }: DataFields): Buffer {
  const header = join(Buffer.of(phase ? 0xe0 : 0xc0), id, u32((number + mask) % 2 ** 32));
  return join(header, seal(key, BigInt(number), header, frames));
}
interface DataFields {
  key: Uint8Array;
  number: number;
  mask: number;
  id: Uint8Array;
  phase?: boolean;
}

function initiateWith(token: Uint8Array): Buffer {
  const message = publicKeyOf(bytes('initiator ephemeral private key'));
  const body = join(Buffer.of(token.length), token, message);
  const head = join(Buffer.of(0x80, 1, 1), bytes('initiator id'), Buffer.of(0, body.length));
  const mac1 = mac1Of(name(), join(head, Buffer.alloc(16), body));
  return join(head, mac1, body);
}

function publicKeys(end: End): void {
  for (const kind of ['static', 'ephemeral']) matches(`${end} ${kind} public key`, publicKeyOf(bytes(`${end} ${kind} private key`)));
  expect(fingerprint(bytes(`${end} static public key`))).toBe(text(`${end} fingerprint`));
}

function idAndToken(end: End): void {
  const secret = bytes(`${end} reset secret`);
  matches(`${end} id`, connectionId(secret, bytes(`${end} word`)));
  matches(`${end} reset token`, resetToken(secret, bytes(`${end} id`)));
}

type End = 'initiator' | 'responder';

/** What is computed, each from the inputs and compared with its values. */
const checks: Readonly<Record<string, () => void>> = {
  'public keys and fingerprint of the initiator': () => publicKeys('initiator'),
  'public keys and fingerprint of the responder': () => publicKeys('responder'),
  'id and reset token of the initiator': () => idAndToken('initiator'),
  'id and reset token of the responder': () => idAndToken('responder'),

  'mac1 and Initiate': () => {
    const noise = handshake();
    matches('mac1 key', sha256('svc mac1', name()));
    const initiate = initiateWith(Buffer.alloc(0));
    matches('Initiate', initiate);
    matches('mac1', initiate.subarray(13, 29));
    matches('Noise message 1', publicKeyOf(bytes('initiator ephemeral private key')));
    matches('h after message 1', noise.afterMessage1.h);
  },

  Respond: () => {
    const noise = handshake();
    matches('ck after ee', noise.afterEe.ck);
    matches('ck after es', noise.afterEs.ck);
    matches('Noise message 2', noise.message2);
    matches('Respond', join(Buffer.of(0x82), bytes('initiator id'), bytes('responder id'), noise.message2));
    matches('h after message 2', noise.afterMessage2.h);
  },

  'Complete and the handshake hash': () => {
    const noise = handshake();
    matches('ck after se', noise.afterSe.ck);
    matches('Noise message 3', noise.message3);
    matches('Complete', join(Buffer.of(0x83), bytes('responder id'), noise.message3));
    matches('h, the handshake hash', noise.state.h);
  },

  'the payloads of the handshake, from the private keys of the initiator alone': () => {
    const noise = handshake();
    const read = readMessage2(noise.afterMessage1, bytes('Noise message 2'), bytes('initiator ephemeral private key'));
    matches('payload of message 2', read.payload);
    matches('responder static public key', read.remoteStatic);
    const third = readMessage3(read.state, bytes('Noise message 3'), read.remoteEphemeral, () => bytes('initiator static private key'));
    matches('payload of message 3', third.payload);
    const common = {
      ...{ IdleTimeout: 180_000, MaxUdpPayload: 1_452, MaxData: 1_048_576, MaxStreamData: 16_384 },
      ...{ MaxStreams: 64, MaxMessages: 256, MaxAckDelay: 25, MaxDatagram: 65_527, FlowParts: 64 },
    };
    const of = (end: string) => ({ ...common, Id: bytes(`${end} id`), ResetToken: bytes(`${end} reset token`) });
    expect(decodeMap(read.payload)).toEqual({ ...of('responder'), Info: { ProductId: 'pr-1', DeviceId: 'de-1' } });
    expect(decodeMap(third.payload)).toEqual({ ...of('initiator'), MaxStreams: 0, Versions: Buffer.of(1), Suites: Buffer.of(1) });
  },

  'traffic keys, mask keys and masks': () => {
    const { k1, k2, m1, m2 } = keys();
    matches('k1', k1);
    matches('k2', k2);
    matches('m1', m1);
    matches('m2', m2);
    matches('mask of the responder id under m1', u32(maskOf(m1, bytes('responder id'))));
    matches('mask of the initiator id under m2', u32(maskOf(m2, bytes('initiator id'))));
  },

  'both Data packets and their content': () => {
    const { k1, k2, m1, m2 } = keys();
    const request = {
      number: count('initiator packet number'),
      key: k1,
      mask: maskOf(m1, bytes('responder id')),
      id: bytes('responder id'),
    };
    matches('initiator Data packet', dataPacket(bytes('initiator frames'), request));
    const response = {
      number: count('responder packet number'),
      key: k2,
      mask: maskOf(m2, bytes('initiator id')),
      id: bytes('initiator id'),
    };
    matches('responder Data packet', dataPacket(bytes('responder frames'), response));

    expect(decodeFrames(bytes('initiator frames'))).toEqual([{ type: 'STREAM', id: 2, offset: 0, data: bytes('CoAP request'), fin: true }]);
    expect(decodeFrames(bytes('responder frames'))).toEqual([
      { type: 'ACK', largest: 1, delay: 0, ranges: [[0, 1]] },
      { type: 'STREAM', id: 3, offset: 0, data: bytes('CoAP response'), fin: true },
    ]);
    const asked = decodeCoap(bytes('CoAP request'));
    const answered = decodeCoap(bytes('CoAP response'));
    expect([asked.code, pathOf(asked), answered.code, answered.payload.toString()]).toEqual(['0.01', '/a', '2.05', 'b']);
    expect(answered.token).toEqual(asked.token);
  },

  'Route, with its id and reset token': () => {
    const secret = bytes('station reset secret');
    matches('route id', routeId(secret, bytes('random half of the route id')));
    matches('route reset token', resetToken(secret, bytes('route id')));
    matches('Route', join(Buffer.of(0x88), bytes('route id'), bytes('initiator Data packet')));
    expect(decodePacket(bytes('Route'))).toMatchObject({ kind: 'Route', route: bytes('route id') });
  },

  'Retry and the Initiate that follows it': () => {
    const bound = [bytes('initiator id'), count('Retry port'), text('Retry address')] as const;
    const token = retryToken(bytes('Retry secret'), count('Retry time'), ...bound);
    matches('Retry token', token);
    matches('Retry', join(Buffer.of(0x81), bytes('initiator id'), token));
    matches('Initiate with the token', initiateWith(token));
    expect(decodePacket(bytes('Initiate with the token'))).toMatchObject({ kind: 'Initiate', token });
  },

  'Reset and Versions': () => {
    matches('Reset', join(Buffer.of(0x84), bytes('responder id'), resetToken(bytes('responder reset secret'), bytes('responder id'))));
    matches('Versions', join(Buffer.of(0x85), bytes('initiator id'), Buffer.of(1, 1, 1, 1)));
    expect(decodePacket(bytes('Reset'))).toMatchObject({ kind: 'Reset', id: bytes('responder id') });
    expect(decodePacket(bytes('Versions'))).toMatchObject({ kind: 'Versions', versions: Buffer.of(1), suites: Buffer.of(1) });
  },

  'the key after an update, and the packet under it': () => {
    const { k1, m1 } = keys();
    const key = rekey(k1);
    matches('k1 after the update', key);
    const number = count('number of the packet under it');
    const id = bytes('responder id');
    const packet = dataPacket(bytes('frames of the packet under it'), { key, number, mask: maskOf(m1, id), id, phase: true });
    matches('Data packet under it', packet);
    const direction = new Direction(k1, m1);
    for (const label of ['initiator Data packet', 'Data packet under it']) direction.open(decodePacket(bytes(label)) as Data);
    expect(direction.keys).toHaveLength(2);
    expect(hex(open(key, BigInt(number), packet.subarray(0, 13), packet.subarray(13)))).toBe('01');
  },

  'datagrams of a flow': () => {
    const [flow, number, payload] = [count('flow number'), count('datagram number'), bytes('UDP payload')];
    const twoBytes = (value: number) => Buffer.of(0x40 | (value >> 8), value & 255);
    const half = payload.length / 2;
    const parts = [0, 1].map((index) => bytes(`content of part ${index} of 2`));
    matches('content without FlowParts', join(twoBytes(flow), payload));
    matches('whole content', join(twoBytes(flow), Buffer.of(0), payload));
    for (const [index, part] of parts.entries()) {
      expect(hex(part)).toBe(
        hex(join(twoBytes(flow), twoBytes(number), Buffer.of(index, 2), payload.subarray(index * half, (index + 1) * half))),
      );
      expect(decodeFlowContent(part)).toMatchObject({ flow, number, index, count: 2 });
    }
    expect(decodeFlowContent(bytes('whole content'))).toEqual({ flow, number: 0, payload });
    expect(Buffer.concat(parts.map((part) => decodeFlowContent(part).payload))).toEqual(payload);
  },

  'the password exchange': () => {
    const exchange = {
      password: text('password'),
      salt: bytes('Salt'),
      handshakeHash: handshake().state.h,
      run: count('Run'),
      clientFingerprint: text('initiator fingerprint'),
      deviceFingerprint: text('responder fingerprint'),
      productId: text('product id'),
      deviceId: text('device id'),
      username: text('Username'),
    };
    expect(count('Kdf')).toBe(1);
    matches('value, by scrypt', scryptValue(exchange));
    const inputs = inputsOf(exchange);
    matches('PRS', inputs.prs);
    matches('sid', inputs.sid);
    matches('CI', inputs.ci);
    const result = run(inputs, bytes("device's scalar"), bytes("client's scalar"));
    matches('generator', result.generator);
    matches('Ya, share of the device', result.ya);
    matches('Yb, share of the client', result.yb);
    matches('K', result.k);
    matches('ISK', result.isk);
    matches('mac_key', result.macKey);
    matches('Tag of the client', result.clientTag);
    matches('Tag of the device', result.deviceTag);
  },
};

/** The labels that a check looks up. */
function labelsOf(check: () => void): ReadonlySet<string> {
  used.clear();
  check();
  return new Set(used);
}

/**
 * Another value of the same kind. Bytes change in the middle: X25519 ignores bits at both ends of a private key.
 */
function other(value: Value): Value {
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'string') return `${value.slice(0, -1)}${value.endsWith('0') ? '1' : '0'}`;
  const changed = Uint8Array.from(value);
  changed[changed.length >> 1]! ^= 1;
  return changed;
}

/** Whether the check fails with these values. */
function fails(check: () => void, values: ReadonlyMap<string, Value>): boolean {
  vectors = values;
  try {
    check();
    return false;
  } catch {
    return true;
  } finally {
    vectors = published;
  }
}

describe('a second implementation computes', () => {
  it.each(Object.entries(checks))('%s', (_, check) => check());
});

describe('docs/vectors.json', () => {
  const users = Object.values(checks).map((check) => ({ check, labels: labelsOf(check) }));

  it('has no value that the checks leave out', () => {
    expect([...published.keys()].filter((label) => !users.some(({ labels }) => labels.has(label)))).toEqual([]);
  });

  it('fails with any one of its values changed', { tags: ['slow'] }, () => {
    const unnoticed = [...published].flatMap(([label, value]) => {
      const values = new Map(published).set(label, other(value));
      return users.some(({ check, labels }) => labels.has(label) && fails(check, values)) ? [] : [label];
    });
    expect(unnoticed).toEqual([]);
  });
});
