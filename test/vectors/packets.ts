/**
 * Test vectors of packets after the handshake (PROTOCOL.md §2 and §4), made by the core; and of Route, Retry, Reset,
 * and Versions.
 */
import { type Core, type CoreConnection, EventKind } from '../../bindings/index.ts';
import { encodeMessage, MethodCode, OptionNumber } from '../../protocol/coap/index.ts';
import { Resets } from '../../protocol/endpoint/reset.ts';
import { RetryTokens } from '../../protocol/endpoint/retry.ts';
import type { TrafficKeys } from '../../protocol/noise/index.ts';
import {
  encodeInitiate,
  encodeReset,
  encodeRetry,
  encodeVersions,
  mac1Key,
  routed,
  SUITE,
  u32,
  VERSION,
  writeU32,
} from '../../protocol/packet/index.ts';
import type { Path } from '../../protocol/path.ts';
import { RouteIds } from '../../protocol/relay/route-id.ts';
import type { HandshakeVectors } from './handshake.ts';
import { counting, crypto, fixedCrypto, initiatorParameters, names, parameters, responder, retry, station } from './inputs.ts';
import type { Section } from './values.ts';

/** Of a token of a CoAP request. */
const TOKEN = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
/** Status 2.05. */
const CONTENT = 0x45;
const START = 1_000;
/** One way, ms. */
const DELAY = 10;
/** More than 3 PTO of such a connection. */
const LONG = 5_000;
const EMPTY = new Uint8Array(0);
/** Bytes of a Data packet before the frames, and where its number stands. */
const HEADER = 13;
const NUMBER_AT = 9;
/** 2^64 - 1, little-endian behind four zeros (Noise rev. 34 §4.2). */
const REKEY_NONCE = Uint8Array.of(0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255);

/** The sections, in order. */
export function packetVectors(handshake: HandshakeVectors): readonly Section[] {
  const pair = new Pair(handshake);
  const request = pair.request();
  const response = pair.response();
  const updated = pair.afterUpdate();
  pair.free();
  const { keys } = handshake;
  return [
    {
      title: 'Keys and masks of the connection',
      values: {
        k1: keys.send,
        k2: keys.receive,
        m1: keys.sendMask,
        m2: keys.receiveMask,
        'mask of the responder id under m1': maskIn(request, 1),
        'mask of the initiator id under m2': maskIn(response, 0),
      },
    },
    {
      title: 'Data packets',
      values: {
        'initiator packet number': 1,
        'CoAP request': requestMessage(),
        'initiator frames': framesOf(handshake.core, keys.send, request, 1),
        'initiator Data packet': request,
        'responder packet number': 0,
        'CoAP response': responseMessage(),
        'responder frames': framesOf(handshake.core, keys.receive, response, 0),
        'responder Data packet': response,
      },
    },
    routeSection(request),
    retrySection(handshake),
    resetSection(handshake),
    versionsSection(handshake),
    keyUpdateSection(handshake.core, keys, updated, u32(maskIn(request, 1), 0)),
  ];
}

/** Two connections of the core that talk at fixed times. */
class Pair {
  readonly #core: Core;
  readonly #initiator: CoreConnection;
  readonly #responder: CoreConnection;
  #now = START;

  constructor({ core, keys, initiatorId, responderId, complete }: HandshakeVectors) {
    this.#core = core;
    const common = { skipSeed: 1, challengeSeed: counting(0), now: START };
    this.#initiator = core.open({
      initiator: true,
      sendKey: keys.send,
      receiveKey: keys.receive,
      sendMaskKey: keys.sendMask,
      receiveMaskKey: keys.receiveMask,
      localId: initiatorId,
      remoteId: responderId,
      local: initiatorParameters,
      remote: parameters,
      complete,
      ...common,
    });
    this.#responder = core.open({
      initiator: false,
      sendKey: keys.receive,
      receiveKey: keys.send,
      sendMaskKey: keys.receiveMask,
      receiveMaskKey: keys.sendMask,
      localId: responderId,
      remoteId: initiatorId,
      local: parameters,
      remote: initiatorParameters,
      ...common,
    });
  }

  /** The request, behind Complete. */
  request(): Uint8Array {
    this.#initiator.messages.send(requestMessage());
    const [complete, data] = this.#transmit(this.#initiator);
    if (complete?.[0] !== 0x83 || data === undefined) throw new Error('the initiator did not send Complete and Data');
    this.#now += DELAY;
    this.#responder.completeReceived(this.#now);
    receive(this.#responder, data, this.#now);
    return data;
  }

  /** The answer, which the initiator has then. */
  response(): Uint8Array {
    this.#responder.messages.send(responseMessage());
    const [data] = this.#transmit(this.#responder);
    this.#now += DELAY;
    receive(this.#initiator, data!, this.#now);
    return data!;
  }

  /** A PING of the initiator under its next key. */
  afterUpdate(): Uint8Array {
    this.#now += LONG;
    for (const connection of [this.#initiator, this.#responder]) {
      connection.handleTimeout(this.#now);
      this.#transmit(connection);
    }
    if (!this.#initiator.updateKey()) throw new Error('the core did not update its key');
    this.#initiator.ping();
    const [data] = this.#transmit(this.#initiator);
    receive(this.#responder, data!, this.#now);
    return data!;
  }

  free(): void {
    for (const connection of [this.#initiator, this.#responder]) connection.free();
  }

  #transmit(connection: CoreConnection): Uint8Array[] {
    const packets: Uint8Array[] = [];
    for (let count = connection.transmit(this.#now); count > 0; count = connection.transmit(this.#now)) {
      for (let index = 0; index < count; index++) {
        const offset = this.#core.packetOffsets[index]!;
        packets.push(this.#core.buffer.slice(offset, offset + this.#core.packetLengths[index]!));
        this.#core.release(offset);
      }
    }
    return packets;
  }
}

/** @throws Error for a packet that does not open */
function receive(connection: CoreConnection, packet: Uint8Array, now: number): void {
  if (!connection.receive(packet, 0, now)) throw new Error('a Data packet does not open');
  while (connection.nextEvent() !== EventKind.NONE);
}

function requestMessage(): Uint8Array {
  const path = { number: OptionNumber.URI_PATH, value: new TextEncoder().encode('a') };
  return encodeMessage({ code: MethodCode.GET, token: TOKEN, options: [path], payload: EMPTY });
}

function responseMessage(): Uint8Array {
  return encodeMessage({ code: CONTENT, token: TOKEN, options: [], payload: new TextEncoder().encode('b') });
}

function routeSection(packet: Uint8Array): Section {
  const ids = new RouteIds(fixedCrypto([station.routeRandom]), station.resetSecret);
  const id = ids.next();
  return {
    title: 'Route',
    values: {
      'station reset secret': station.resetSecret,
      'random half of the route id': station.routeRandom,
      'route id': id,
      'route reset token': ids.resetToken(id),
      Route: routed(id, packet),
    },
  };
}

function retrySection({ initiatorId, noiseMessage1 }: HandshakeVectors): Section {
  const path = { address: retry.address, port: retry.port } as Path;
  const token = new RetryTokens(fixedCrypto([retry.secret])).issue(path, initiatorId, 1_000 * retry.time);
  const fields = { version: VERSION, suite: SUITE, source: initiatorId, token, message: noiseMessage1 };
  return {
    title: 'Retry',
    values: {
      'Retry secret': retry.secret,
      'Retry time': retry.time,
      'Retry port': retry.port,
      'Retry address': retry.address,
      'Retry token': token,
      Retry: encodeRetry({ destination: initiatorId, token }),
      'Initiate with the token': encodeInitiate(crypto, mac1Key(crypto, names.responder), fields),
    },
  };
}

function resetSection({ responderId }: HandshakeVectors): Section {
  const resets = new Resets(crypto, responder.resetSecret);
  return {
    title: 'Reset',
    values: { Reset: encodeReset({ id: responderId, token: resets.token(responderId) }) },
  };
}

function versionsSection({ initiatorId }: HandshakeVectors): Section {
  const known = { versions: Uint8Array.of(VERSION), suites: Uint8Array.of(SUITE) };
  return {
    title: 'Versions',
    values: { Versions: encodeVersions({ destination: initiatorId, ...known }) },
  };
}

function keyUpdateSection(core: Core, { send }: TrafficKeys, packet: Uint8Array, mask: number): Section {
  const number = (u32(packet, NUMBER_AT) - mask) >>> 0;
  const next = core.aead.seal(send, REKEY_NONCE, EMPTY, new Uint8Array(32)).subarray(0, 32);
  return {
    title: 'Key update',
    values: {
      'k1 after the update': next,
      'number of the packet under it': number,
      'frames of the packet under it': framesOf(core, next, packet, number),
      'Data packet under it': packet,
    },
  };
}

/** The frames of a Data packet. */
function framesOf(core: Core, key: Uint8Array, packet: Uint8Array, number: number): Uint8Array {
  const frames = core.aead.open(key, number, packet.subarray(0, HEADER), packet.subarray(HEADER));
  if (frames === null) throw new Error('a Data packet does not open');
  return frames;
}

/** What is added to the number of a packet whose number is known. */
function maskIn(packet: Uint8Array, number: number): Uint8Array {
  const mask = new Uint8Array(4);
  writeU32(mask, 0, u32(packet, NUMBER_AT) - number);
  return mask;
}
