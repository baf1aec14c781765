/** Connection ids (RFC 9000 §5.1, §19.15, §19.16): violations by a peer with valid keys, and their cost. */
import { describe, expect, test } from 'vitest';
import { EventKind, TransportError } from '../../bindings/index.ts';
import { forge, maskOf, reveal, varint } from './forge.ts';
import { Pair } from './pair.ts';

const NEW_CONNECTION_ID = 0x18;
const RETIRE_CONNECTION_ID = 0x19;

interface NewId {
  sequence: number;
  retire?: number;
  id?: number;
  length?: number;
}

function newId({ sequence, retire = 0, id = 100 + sequence, length = 8 }: NewId): number[] {
  return [
    NEW_CONNECTION_ID,
    ...varint(sequence),
    ...varint(retire),
    length,
    ...new Array<number>(length).fill(id),
    ...new Array<number>(16).fill(id),
  ];
}

const retire = (sequence: number) => [RETIRE_CONNECTION_ID, ...varint(sequence)];

/** The responder of a pair whose initiator is silent, so that forged packets take its place. */
function victim() {
  const pair = new Pair();
  pair.intercept = () => null;
  let number = 1;
  const { connection } = pair.responder;
  const send = (frames: number[]) => {
    const accepted = pair.inject(forge({ number: number++, frames }), pair.responder);
    pair.settle();
    return accepted;
  };
  const closed = () => pair.responder.events.find(({ kind }) => kind === EventKind.CLOSED)?.value;
  return { pair, connection, send, closed };
}

describe('a NEW_CONNECTION_ID frame', () => {
  test.each([
    ['more than the limit', [1, 2, 3, 4].flatMap((sequence) => newId({ sequence })), TransportError.CONNECTION_ID_LIMIT_ERROR],
    [
      'the same sequence number with another id',
      [...newId({ sequence: 1 }), ...newId({ sequence: 1, id: 9 })],
      TransportError.PROTOCOL_VIOLATION,
    ],
    [
      'the same id with another sequence number',
      [...newId({ sequence: 1 }), ...newId({ sequence: 2, id: 101 })],
      TransportError.PROTOCOL_VIOLATION,
    ],
    ['sequence number 0 with an id other than that of the handshake', newId({ sequence: 0 }), TransportError.PROTOCOL_VIOLATION],
    ['Retire Prior To above its own sequence number', newId({ sequence: 1, retire: 2 }), TransportError.FRAME_ENCODING_ERROR],
    ['an id of another length', newId({ sequence: 1, length: 4 }), TransportError.FRAME_ENCODING_ERROR],
    ['an empty id', newId({ sequence: 1, length: 0 }), TransportError.FRAME_ENCODING_ERROR],
    ['a frame that is cut off', newId({ sequence: 1 }).slice(0, -1), TransportError.FRAME_ENCODING_ERROR],
  ])('with %s closes', (_, frames, error) => {
    const { send, closed } = victim();
    send(frames);
    expect(closed()).toBe(error);
  });

  test('received again changes nothing', () => {
    const { send, closed, connection } = victim();
    for (let i = 0; i < 5; i++) send([1, 2, 3].flatMap((sequence) => newId({ sequence })));
    expect(closed()).toBeUndefined();
    expect(connection.paths.ids()!.theirs.length).toBe(4);
  });

  test('may arrive in any order', () => {
    const { send, closed, connection } = victim();
    for (const sequence of [3, 1, 2]) send(newId({ sequence }));
    expect(closed()).toBeUndefined();
    expect(
      connection.paths
        .ids()!
        .theirs.map(({ id }) => id[0])
        .sort(),
    ).toEqual([1, 101, 102, 103]);
  });

  test('with Retire Prior To replaces older ids, including the one in use', () => {
    const { pair, send, closed, connection } = victim();
    connection.paths.enableIds();
    send([1, 2, 3].flatMap((sequence) => newId({ sequence })));
    const sent: Uint8Array[] = [];
    pair.intercept = (datagram, from) => {
      if (from === pair.responder) sent.push(datagram);
      return null;
    };
    send(newId({ sequence: 4, retire: 4 }));
    expect(closed()).toBeUndefined();
    expect(connection.paths.ids()!.theirs.map(({ id }) => id[0])).toEqual([104]);
    connection.ping();
    pair.settle();
    const [packet] = sent.slice(-1);
    expect([...packet!.subarray(1, 9)]).toEqual(new Array(8).fill(104));
    // packet numbers under the mask of the new id
    const mask = maskOf(new Uint8Array(32).fill(4), new Uint8Array(8).fill(104));
    const number = (new DataView(packet!.buffer, packet!.byteOffset).getUint32(9) - mask) >>> 0;
    expect(number).toBeLessThan(20);
    // retired ids stay retired
    send([1, 2, 3].flatMap((sequence) => newId({ sequence })));
    expect(closed()).toBeUndefined();
    expect(connection.paths.ids()!.theirs.length).toBe(1);
  });

  test('below an earlier Retire Prior To is retired and not kept (RFC 9000 §19.15)', () => {
    const { send, closed, connection } = victim();
    connection.paths.enableIds();
    send(newId({ sequence: 4, retire: 4 }));
    send(newId({ sequence: 2 }));
    expect(closed()).toBeUndefined();
    expect(connection.paths.ids()!.theirs.map(({ id }) => id[0])).toEqual([104]);
  });

  test('in an endless series, each retiring the one before, closes when retirements are not acknowledged', { tags: ['slow'] }, () => {
    const { pair, send, closed } = victim();
    const free = pair.core.stats().freeChunks;
    for (let sequence = 1; sequence < 100 && closed() === undefined; sequence++) send(newId({ sequence, retire: sequence }));
    expect(closed()).toBe(TransportError.CONNECTION_ID_LIMIT_ERROR);
    expect(pair.core.stats().freeChunks).toBeGreaterThan(free - 40);
  });
});

describe('a RETIRE_CONNECTION_ID frame', () => {
  test.each([
    ['for the id that the packet was sent to', retire(0)],
    ['for an id that was never supplied', retire(1)],
    ['for a sequence number far ahead', retire(2 ** 40)],
  ])('%s closes', (_, frames) => {
    const { send, closed } = victim();
    send(frames);
    expect(closed()).toBe(TransportError.PROTOCOL_VIOLATION);
  });

  test.each([
    ['for the id that the packet was sent to', retire(0)],
    ['for the next id', retire(4)],
  ])('%s closes while others are supplied', (_, frames) => {
    const { send, closed, connection } = victim();
    connection.paths.enableIds();
    for (const value of [50, 51, 52]) connection.paths.issueId(new Uint8Array(8).fill(value), new Uint8Array(16));
    send(frames);
    expect(closed()).toBe(TransportError.PROTOCOL_VIOLATION);
  });

  test('for a spare id frees it, once', () => {
    const { send, closed, connection } = victim();
    connection.paths.enableIds();
    const issue = (value: number) => connection.paths.issueId(new Uint8Array(8).fill(value), new Uint8Array(16));
    expect([issue(50), issue(51), issue(52), issue(53)]).toEqual([true, true, true, false]);
    send([...retire(2), ...retire(2)]);
    send(retire(2));
    expect(closed()).toBeUndefined();
    expect(connection.paths.ids()).toMatchObject({ room: 1 });
    expect(connection.paths.ids()!.ours.map((id) => id[0])).toEqual([2, 50, 52]);
    expect(issue(54)).toBe(true);
  });
});

describe('path frames of a peer with valid keys', () => {
  test('more challenges than can be queued are not answered', () => {
    const { pair, send, closed } = victim();
    let answers = 0;
    let most = 0;
    pair.intercept = (datagram, from) => {
      if (from !== pair.responder) return null;
      answers++;
      const frames = Buffer.from(reveal(datagram, 'responder')!).toString('hex');
      most = Math.max(most, frames.split('1b0102030405060708').length - 1);
      return null;
    };
    const challenge = [0x1a, 1, 2, 3, 4, 5, 6, 7, 8];
    for (let i = 0; i < 50; i++) send(Array.from({ length: 100 }, () => challenge).flat());
    expect(closed()).toBeUndefined();
    // for each of its packets one packet with four responses, and acknowledgements
    expect(answers).toBeLessThan(50 * 3);
    expect(most).toBe(4);
  });

  test('responses without a challenge are ignored', () => {
    const { send, closed, pair } = victim();
    const free = pair.core.stats().freeChunks;
    expect(send([0x1b, 1, 2, 3, 4, 5, 6, 7, 8])).toBe(true);
    expect(closed()).toBeUndefined();
    expect(pair.core.stats().freeChunks).toBe(free);
  });

  test('that are cut off close', () => {
    for (const type of [0x1a, 0x1b]) {
      const { send, closed } = victim();
      send([type, 1, 2, 3]);
      expect(closed()).toBe(TransportError.FRAME_ENCODING_ERROR);
    }
  });
});

describe('an idle connection', () => {
  test('owns no chunk, and none when ids were never exchanged', () => {
    const pair = new Pair();
    const free = pair.core.stats().freeChunks;
    pair.responder.onEvent = ({ kind, stream }, { connection }) => {
      if (kind === EventKind.MESSAGE) connection.messages.read(stream);
    };
    pair.initiator.connection.messages.send(new Uint8Array(100));
    pair.run(20_000);
    expect(pair.core.stats().freeChunks).toBe(free);
  });

  test('returns all memory when it is freed, ids and paths included', () => {
    const pair = new Pair();
    const free = pair.core.stats().freeChunks;
    for (const { connection } of pair.ends) {
      connection.paths.enableIds();
      connection.paths.add({}, pair.now);
      connection.paths.issueId(new Uint8Array(8).fill(77), new Uint8Array(16));
    }
    pair.run(100);
    expect(pair.core.stats().freeChunks).toBeLessThan(free);
    pair.free();
    expect(pair.core.stats().freeChunks).toBe(free);
  });
});
