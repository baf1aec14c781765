/**
 * What an initiator gets from a responder under load, of another version, or without its state: Retry, Versions and
 * Reset, captured between two endpoints and opened by the decoder.
 */
import { describe, expect, it } from 'vitest';
import { Core } from '../../bindings/index.ts';
import { Endpoint } from '../../protocol/endpoint/index.ts';
import { nativeHost } from '../support/crypto.ts';
import { dial, pair } from '../support/fixture/endpoints.ts';
import { keyed } from './capture.ts';
import { Refused } from './decoder/crypto.ts';
import { type Captured, Decoder } from './decoder/decoder.ts';
import { decodePacket, type Initiate, mac1Of } from './decoder/packets.ts';

const NAME = 'device:p.d';
const MAC1_AT = 13;
const BODY_AT = 29;
/** GET, with a token of 8 bytes. */
const GET = Uint8Array.of(8, 1, 1, 2, 3, 4, 5, 6, 7, 8);
/** An endpoint with more half-open handshakes than this asks for a token: any. */
const UNDER_LOAD = { limits: { halfOpen: 64, retryAbove: 0, connections: 8 } };

interface Loaded {
  readonly packets: readonly Captured[];
  readonly privateKeys: readonly Uint8Array[];
}

/** A connect under load, a request, and one more after the device has lost its state. */
function capture(): Loaded {
  const privateKeys: Uint8Array[] = [];
  const crypto = keyed(nativeHost(31), privateKeys);
  const { network, client, device } = pair(31, { client: { crypto, identity: crypto.generateKey() }, device: UNDER_LOAD });
  const packets: Captured[] = [];
  network.tap = ({ from, bytes }) => {
    packets.push({ side: from === client ? 'initiator' : 'responder', datagram: bytes.slice() });
    return undefined;
  };
  const connection = dial(client, device);
  expect(network.run(() => connection.state === 'open')).toBe(true);
  connection.messages.send(GET);
  network.pass(1_000);
  device.endpoint = new Endpoint({ ...device.config, core: Core.create({ connections: 8, memory: 8 << 20 }) });
  connection.messages.send(GET);
  expect(network.run(() => client.find('closed') !== undefined)).toBe(true);
  return { packets, privateKeys };
}

/** What a device answers to an Initiate of version 2 whose mac1 holds. */
function versionsFor({ datagram }: Captured): Buffer {
  const { network, client, device } = pair(32);
  const initiate = Buffer.from(datagram);
  initiate[1] = 2;
  seal(initiate);
  network.deliver({ from: client, to: device, bytes: initiate });
  expect(network.run(() => network.sent.length > 0, 1_000)).toBe(true);
  return Buffer.from(network.sent[0]!.bytes);
}

/** Returns a changed Initiate with a valid mac1, which any party that knows the responder's name can compute. */
function seal(initiate: Buffer): void {
  const end = BODY_AT + initiate.readUInt16BE(11);
  mac1Of(NAME, initiate.subarray(0, end)).copy(initiate, MAC1_AT);
}

const { packets, privateKeys } = capture();
const kinds = packets.map(({ datagram }) => decodePacket(Buffer.from(datagram)).kind);
const at = (kind: string): number => kinds.indexOf(kind as (typeof kinds)[number]);

/** A decoder that has opened all packets before the one at `index`. */
function decoderBefore(index: number): Decoder {
  const decoder = new Decoder([NAME], privateKeys);
  for (const packet of packets.slice(0, index)) decoder.open(packet);
  return decoder;
}

describe('a session under load', () => {
  it('begins with Retry, ends with Reset, and every packet of it opens', () => {
    expect(kinds.slice(0, 5)).toEqual(['Initiate', 'Retry', 'Initiate', 'Respond', 'Complete']);
    expect(kinds.at(-1)).toBe('Reset');
    expect(new Set(kinds.slice(5, -1))).toEqual(new Set(['Data']));
    const decoder = decoderBefore(packets.length);
    expect(decoder.connections).toHaveLength(1);
    expect(decoder.connections[0]!.messages.map(({ side, bytes }) => [side, [...bytes]])).toEqual([
      ['initiator', [...GET]],
      ['initiator', [...GET]],
    ]);
  });

  it('repeats the Noise message and the source id, with the token and a new mac1 (§2.4)', () => {
    const [first, retry, second] = packets.slice(0, 3).map(({ datagram }) => decodePacket(Buffer.from(datagram)));
    const [before, after] = [first as Initiate, second as Initiate];
    expect(retry).toEqual({ kind: 'Retry', destination: before.source, token: after.token });
    expect([after.source, after.message, before.token.length]).toEqual([before.source, before.message, 0]);
    expect(after.mac1).not.toEqual(before.mac1);
  });

  it('takes no other token than that of the Retry', () => {
    const forged = Buffer.from(packets[2]!.datagram);
    forged[BODY_AT + 1]! ^= 1;
    seal(forged);
    expect(() => decoderBefore(2).open({ side: 'initiator', datagram: forged })).toThrow('a token of no Retry');
    const retry = Buffer.from(packets[1]!.datagram);
    retry[retry.length - 1]! ^= 1;
    const decoder = decoderBefore(1);
    // Nothing authenticates Retry; the Initiate that follows does not fit it.
    decoder.open({ side: 'responder', datagram: retry });
    expect(() => decoder.open(packets[2]!)).toThrow('a token of no Retry');
    expect(() => decoderBefore(at('Respond') + 1).open(packets[1]!)).toThrow('a Retry after Respond');
  });

  it('takes a Reset with the token of the id alone (§2.5)', () => {
    const { datagram } = packets.at(-1)!;
    const decoder = decoderBefore(packets.length - 1);
    for (let position = 0; position < datagram.length; position++) {
      const forged = new Uint8Array(datagram);
      forged[position]! ^= 4;
      expect(() => decoder.open({ side: 'responder', datagram: forged }), `byte ${position}`).toThrow(Refused);
    }
    expect(decoder.open(packets.at(-1)!).kind).toBe('Reset');
  });
});

describe('an Initiate of an unknown version', () => {
  it('is answered with Versions, which an initiator of a listed version ignores (§2.3)', () => {
    const answer = versionsFor(packets[0]!);
    const { source } = decodePacket(Buffer.from(packets[0]!.datagram)) as Initiate;
    expect(decodePacket(answer)).toEqual({ kind: 'Versions', source, versions: Buffer.of(1), suites: Buffer.of(1) });
    const decoder = decoderBefore(1);
    expect(() => decoder.open({ side: 'responder', datagram: answer })).toThrow('Versions that list what was offered');
    answer[10] = 3;
    expect(decoder.open({ side: 'responder', datagram: answer }).kind).toBe('Versions');
  });
});
