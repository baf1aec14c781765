/** Handshakes by hand: an endpoint that answers to `device:p.d`, the packets of strangers, and their paths. */
import { expect } from 'vitest';
import type { CryptoProvider } from '../../../protocol/crypto-provider.ts';
import type { Endpoint } from '../../../protocol/endpoint/index.ts';
import { HandshakeState, XX } from '../../../protocol/noise/index.ts';
import { decodeRespond, decodeRetry, encodeInitiate, mac1Key, padded } from '../../../protocol/packet/index.ts';
import type { Path } from '../../../protocol/path.ts';
import { nativeHost, nobleAead } from '../../support/crypto.ts';
import { EndpointFixture } from '../../support/fixture/endpoints.ts';

/** An endpoint that answers to `device:p.d`, by hand. */
export function responder(limits: Partial<{ halfOpen: number; retryAbove: number }>): {
  endpoint: Endpoint;
  drain: (now: number) => Uint8Array[];
} {
  const node = new EndpointFixture(1).device({ limits: { halfOpen: 64, retryAbove: 16, connections: 8, ...limits } });
  const { endpoint } = node;
  return {
    endpoint,
    drain: (now) => {
      const packets: Uint8Array[] = [];
      for (let batch = endpoint.transmit(now); batch !== null; batch = endpoint.transmit(now)) {
        packets.push(batch.buffer.slice(batch.offsets[0], batch.offsets[0]! + batch.lengths[0]!));
      }
      return packets;
    },
  };
}

export interface Strangers {
  readonly crypto: CryptoProvider;
  /** The key of mac1 of the endpoint. */
  readonly key: Uint8Array;
  /** Makes an Initiate with a valid mac1, whose ephemeral key depends on the source id only. */
  initiate(source: Uint8Array, token?: Uint8Array, padding?: boolean): Uint8Array;
  /** Begins a relayed handshake. Returns the id in its Respond; null when there is no room. */
  carry(endpoint: Endpoint, way: Path, now: number): Uint8Array | null;
  /** Returns the types of the answers to a client that honours a Retry. */
  knock(endpoint: Endpoint, drain: (now: number) => Uint8Array[], now: number): number[];
}

/** Strangers whose ids depend on the seed. */
export function strangers(seed: number): Strangers {
  const crypto = nativeHost(seed);
  const key = mac1Key(crypto, 'device:p.d');

  function initiate(source: Uint8Array, token: Uint8Array = new Uint8Array(0), padding = true): Uint8Array {
    const handshake = new HandshakeState({
      pattern: XX,
      initiator: true,
      prologue: new Uint8Array(0),
      crypto,
      aead: nobleAead,
      staticKey: crypto.importKey(new Uint8Array(32).fill(1)),
      ephemeral: crypto.importKey(crypto.sha256(source)),
    });
    const message = handshake.writeMessage(new Uint8Array(0));
    const packet = encodeInitiate(crypto, key, { version: 1, suite: 1, source, token, message });
    return padding ? padded(packet) : packet;
  }

  function carry(endpoint: Endpoint, way: Path, now: number): Uint8Array | null {
    try {
      return decodeRespond(endpoint.accept(initiate(crypto.randomBytes(8)), way, now))!.source;
    } catch (error) {
      expect(error).toMatchObject({ code: 'TOO_MANY_REQUESTS' });
      return null;
    }
  }

  function knock(endpoint: Endpoint, drain: (now: number) => Uint8Array[], now: number): number[] {
    const source = crypto.randomBytes(8);
    endpoint.receive(initiate(source), path('10.9.0.1', 1), now);
    const [retry] = drain(now);
    endpoint.receive(initiate(source, decodeRetry(retry!)!.token), path('10.9.0.1', 1), now);
    return [retry!, ...drain(now)].map((bytes) => bytes[0]!);
  }

  return { crypto, key, initiate, carry, knock };
}

/** The path of a UDP address. */
export function path(address: string, port: number): Path {
  return { kind: 'udp', key: `udp:0:${address}:${port}`, address, port, socket: 0, local: false };
}

/** The path of a WebSocket. */
export function webSocket(socket: number, address: string): Path {
  return { kind: 'websocket', key: `websocket:${socket}:${address}:443`, address, port: 443, socket, local: false };
}

/** A path through the base station. */
export function route(number: number): Path {
  return { ...path('10.1.1.1', 1), kind: 'route', key: `route:${number}`, route: new Uint8Array(8) };
}

/** Makes a Data packet for an id that does not decrypt, but prolongs a half-open handshake. */
export function dataFor(id: Uint8Array): Uint8Array {
  const packet = new Uint8Array(64);
  packet[0] = 0xc0;
  packet.set(id, 1);
  return packet;
}
