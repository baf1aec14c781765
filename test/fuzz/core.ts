/**
 * The data plane and a peer that has the keys and sends random frames, well-formed or not. The peer may lose its
 * connection; the core must not fail, and has all its memory back when the connection is gone.
 */
import { Core, EventKind, LocalError } from '../../bindings/index.ts';
import type { Random } from '../../testing/random.ts';
import { forge, rekey, varint } from '../bindings/forge.ts';
import { Pair } from '../bindings/pair.ts';
import { below, chance, mutated, pick } from './mutate.ts';
import type { Target } from './target.ts';

const PACKETS = 120;
const STREAM = 0x08;

export const coreTarget: Target = {
  name: 'core.frames',
  weight: 5,
  iterate(random) {
    const core = Core.create({ memory: 4_000_000, streams: 64, connections: 2, ...(chance(random, 0.5) ? { streamSegments: 200 } : {}) });
    const clean = core.stats();
    const pair = new Pair({
      core,
      seed: random.u32(),
      responder: { congestion: pick(random, ['newreno', 'cubic', 'bbr']) },
      parameters: { maxMessages: 1 + below(random, 300), maxStreams: 1 + below(random, 200) },
    });
    const { responder } = pair;
    const buffer = new Uint8Array(5000);
    responder.onEvent = ({ kind, stream }, { connection }) => {
      if (kind === EventKind.MESSAGE && chance(random, 0.8)) connection.messages.read(stream);
      if (kind === EventKind.STREAM_READABLE && chance(random, 0.5)) connection.streams.read(stream, buffer);
      if (kind === EventKind.STREAM_OPENED && chance(random, 0.5)) connection.streams.write(stream, buffer);
      if (kind === EventKind.STREAM_OPENED && chance(random, 0.3)) connection.streams.finish(stream);
      if (kind === EventKind.DATAGRAM && chance(random, 0.5)) connection.messages.readDatagram();
    };
    pair.intercept = () => null;
    let [key, phase]: [Uint8Array, boolean] = [new Uint8Array(32).fill(1), false];
    for (let number = 1; number < PACKETS && !responder.kinds().includes(EventKind.CLOSED); number++) {
      call(random, responder.connection, pair.now);
      const sent = responder.connection.stats().packetsSent;
      let frames: Uint8Array = Uint8Array.from(Array.from({ length: 1 + below(random, 4) }, () => frame(random, sent)).flat());
      if (chance(random, 0.02)) frames = mutated(random, frames);
      if (chance(random, 0.005)) frames = random.bytes(below(random, 200));
      if (chance(random, 0.01)) [key, phase] = [rekey(key), !phase];
      pair.inject(forge({ number, frames: frames.subarray(0, 1400), key, phase }), responder);
      pair.run(below(random, 40));
    }
    pair.run(5000);
    pair.free();
    if (core.failed) throw new Error('the core failed');
    const left = core.stats();
    for (const name of ['freeChunks', 'freeSlots', 'connections', 'byteStreams', 'messagesIn', 'messagesOut'] as const) {
      if (left[name] !== clean[name]) throw new Error(`${name} was ${clean[name]} and is ${left[name]}`);
    }
  },
};

/** A call of the application. */
function call(random: Random, connection: Pair['responder']['connection'], now: number): void {
  const id = below(random, 40);
  try {
    switch (below(random, 12)) {
      case 0:
        connection.streams.open();
        break;
      case 1:
        connection.streams.write(id, random.bytes(below(random, 3000)));
        break;
      case 2:
        pick(random, [() => connection.streams.finish(id), () => connection.streams.reset(id, 9), () => connection.streams.stop(id, 9)])();
        break;
      case 3:
        connection.messages.send(random.bytes(below(random, 3000)));
        break;
      case 4:
        connection.messages.sendDatagram(random.bytes(below(random, 1300)));
        break;
      case 5:
        connection.streams.raiseWindow(id, below(random, 1 << 22));
        break;
      case 6:
        pick(random, [() => connection.ping(), () => connection.updateKey(), () => connection.streams.read(id, new Uint8Array(100))])();
        break;
      case 7:
        connection.streams.setWeight(id, below(random, 300));
        break;
      case 8:
        connection.streams.stats(id);
        break;
      case 9:
        path(random, connection, now);
        break;
      default:
    }
  } catch (error) {
    if (!(error instanceof LocalError) || error.code === 'CORE_FAILED') throw error;
  }
}

/** The same for paths, which are indices here. */
function path(random: Random, connection: Pair['responder']['connection'], now: number): void {
  const index = below(random, 5);
  pick(random, [
    () => connection.paths.enableIds(),
    () => connection.paths.add({ portOnly: chance(random, 0.5), keepInterval: below(random, 3) * 1000 }, now),
    () => connection.paths.probe(index, now),
    () => connection.paths.keep(index, below(random, 5000), now),
    () => connection.paths.migrate(index, now),
    () => connection.paths.remove(index),
    () => connection.paths.issueId(random.bytes(8), random.bytes(16)),
  ])();
}

/** One frame, mostly plausible. */
function frame(random: Random, sent: number): number[] {
  const isWild = chance(random, 0.01);
  const id = isWild ? below(random, 2000) : pick(random, [0, 0, 1, 2, 2, 4, 6, 8, 10, 14]);
  const length = pick(random, [0, 1, 7, 300, 1000]);
  const offset = below(random, isWild ? 2 ** 31 : 30_000);
  const data = new Array<number>(length).fill(below(random, 256));
  switch (below(random, 16)) {
    case 0:
      return [0x02, ...varint(below(random, sent + (isWild ? 3 : 0))), 0, ...varint(isWild ? below(random, 40) : 0), 0];
    case 1:
      return [0x04, ...varint(id), 9, ...varint(offset)];
    case 2:
      return [0x05, ...varint(isWild ? id : id & ~2), 9];
    case 3:
      return [0x10, ...varint(below(random, 2 ** 31) * 1024)];
    case 4:
      return [0x11, ...varint(isWild ? id : id & ~2), ...varint(below(random, 2 ** 31) * 4096)];
    case 5:
      return [0x12 + below(random, 2), ...varint(below(random, 2 ** 31))];
    case 6:
      return [0x31, ...varint(length), ...data];
    case 7:
      return [pick(random, [0x00, 0x01])];
    case 8:
      return [pick(random, [0x14, 0x16, 0x17, 0x19]), ...varint(below(random, 1000))];
    case 9:
      return [0x1a + below(random, 2), ...random.bytes(8)];
    case 10:
      return [0x18, ...varint(below(random, 9)), 0, 8, ...random.bytes(24)];
    case 11:
      return isWild ? [0x1c + below(random, 2), ...varint(below(random, 9000)), 0, 0] : [0x01];
    default: {
      const flags = below(random, chance(random, 0.1) ? 8 : 7) | 0x06;
      return [STREAM | flags, ...varint(id), ...varint(offset), ...varint(length), ...data];
    }
  }
}
