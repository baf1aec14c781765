/** What waits for an end that sends requests and takes no messages stays bounded. */
import { describe, expect, test } from 'vitest';
import { BERT, blockValue } from '../../../protocol/coap/block.ts';
import { BodyRoom, decodeMessage, Exchanges, encodeMessage } from '../../../protocol/coap/index.ts';
import { OptionNumber, uintOptionOf } from '../../../protocol/coap/options.ts';
import { RemoteError } from '../../../protocol/errors/index.ts';
import { randomBytes, seededRandom } from './pair.ts';

const GET = 0x01;
const POST = 0x02;
const CONTENT = 0x45;
const NOTHING = new Uint8Array(0);

function end(): Exchanges {
  const random = seededRandom(1);
  return new Exchanges({ randomToken: (length) => randomBytes(random, length) });
}

function waiting(exchanges: Exchanges): number {
  let count = 0;
  while (exchanges.transmit() !== null) count++;
  return count;
}

describe('an end that takes no messages', () => {
  test('cannot pile up requests for blocks by sending the first block of its answer repeatedly', { tags: ['slow'] }, () => {
    const client = end();
    client.request({ method: 'GET', path: '/large' }, 0);
    const { token } = decodeMessage(client.transmit()!);
    const options = [uintOptionOf(OptionNumber.BLOCK2, blockValue({ number: 0, more: true, exponent: BERT }))];
    const first = encodeMessage({ code: CONTENT, token, options, payload: new Uint8Array(1024) });
    for (let i = 0; i < 10_000; i++) client.receive(first, i);
    expect(waiting(client)).toBe(1);
  });

  test.each([
    ['POST', POST],
    ['GET', GET],
  ])('cannot pile up notifications by starting and ending observations (%s)', (_, code) => {
    const server = end();
    const observe = (method: number, value: number, token: Uint8Array): void => {
      const options = [{ number: OptionNumber.URI_PATH, value: Uint8Array.of(0x74) }, uintOptionOf(OptionNumber.OBSERVE, value)];
      server.receive(encodeMessage({ code: method, token, options: options.reverse(), payload: NOTHING }), 0);
      for (let event = server.nextEvent(); event !== null; event = server.nextEvent()) {
        if (event.kind === 'request')
          server.responder.respond(event.exchange, { status: 205, observe: true, payload: new Uint8Array(60_000) }, 0);
      }
    };
    for (let i = 0; i < 260; i++) {
      const token = Uint8Array.of(i >> 8, i & 255);
      observe(code, 0, token);
      observe(POST, 1, token);
    }
    expect(server.responder.open).toBe(0);
    // Automatic answers up to their limit, and no notification.
    expect(waiting(server)).toBeLessThanOrEqual(256);
  });
});

describe('bodies in blocks over many channels', () => {
  const MIB = 1 << 20;
  /** Begins an upload with `blocks` of 64 KiB, none of them the last. @returns the codes of the answers */
  const upload = (server: Exchanges, token: number, blocks: number): number[] => {
    for (let i = 0; i < blocks; i++) {
      const block = uintOptionOf(OptionNumber.BLOCK1, blockValue({ number: 64 * i, more: true, exponent: BERT }));
      const options = [{ number: OptionNumber.URI_PATH, value: Uint8Array.of(0x74) }, block];
      server.receive(encodeMessage({ code: POST, token: Uint8Array.of(token), options, payload: new Uint8Array(65_536) }), 0);
    }
    const codes: number[] = [];
    for (let message = server.transmit(); message !== null; message = server.transmit()) codes.push(decodeMessage(message).code);
    return codes;
  };

  test('share one memory limit, and give their share back however they end', () => {
    const bodyRoom = new BodyRoom(2 * MIB);
    const random = seededRandom(1);
    const channels = Array.from({ length: 20 }, () => new Exchanges({ randomToken: (length) => randomBytes(random, length), bodyRoom }));
    const full = channels.map((channel, i) => upload(channel, i, 15).filter((code) => code === 0xa3).length);
    expect(full.slice(0, 2)).toEqual([0, 0]);
    expect(full.slice(2).every((count) => count > 0)).toBe(true);
    expect(bodyRoom.used).toBeLessThanOrEqual(2 * MIB);
    channels[0]!.close(new RemoteError('CLOSED', 'gone'));
    for (const channel of channels) channel.handleTimeout(60_000);
    expect(bodyRoom.used).toBe(0);
    expect(upload(channels[5]!, 9, 15)).toEqual(Array(15).fill(0x5f));
  });

  test('are counted for replies, too', () => {
    const bodyRoom = new BodyRoom(MIB);
    const random = seededRandom(2);
    const server = new Exchanges({ randomToken: (length) => randomBytes(random, length), bodyRoom });
    const codes: number[] = [];
    for (let token = 0; token < 3; token++) {
      const options = [{ number: OptionNumber.URI_PATH, value: Uint8Array.of(0x74) }];
      server.receive(encodeMessage({ code: GET, token: Uint8Array.of(token), options, payload: NOTHING }), 0);
      for (let event = server.nextEvent(); event !== null; event = server.nextEvent())
        if (event.kind === 'request') server.responder.respond(event.exchange, { status: 205, payload: new Uint8Array(500_000) }, 0);
      codes.push(decodeMessage(server.transmit()!).code);
    }
    expect(codes).toEqual([CONTENT, CONTENT, 0xa3]);
    server.handleTimeout(60_000);
    expect(bodyRoom.used).toBe(0);
  });
});
