/**
 * Two honest data planes over a link with 1 % loss: streams and messages both ways while both applications change
 * weights and keys, raise windows, read statistics and abandon streams. All other data arrives unchanged, however
 * little memory there is, and all memory is freed.
 */
import { Core, EventKind } from '../../bindings/index.ts';
import type { Random } from '../../testing/random.ts';
import { type End, Line, Pair } from '../bindings/pair.ts';
import { content, matches, Reader, Writer } from '../bindings/traffic.ts';
import { below, chance, pick } from './mutate.ts';
import type { Target } from './target.ts';

const ACTIONS = 60;
/** Virtual ms in which everything has arrived. */
const END = 3_600_000;

/** One end: its sent data, and its checks of data that arrives. */
class Application {
  readonly writers = new Map<number, Writer>();
  readonly reader: Reader;
  readonly givenUp: Set<number>;
  messages = 0;
  received = 0;
  wrong = 0;
  readonly #end: End;

  constructor(end: End, givenUp: Set<number>, buffer: number) {
    this.#end = end;
    this.givenUp = givenUp;
    this.reader = new Reader(end, buffer);
    end.onEvent = (event) => {
      const { kind, stream } = event;
      this.writers.get(stream)?.on(event);
      this.reader.on(event);
      if (kind === EventKind.STREAM_OPENED) end.connection.streams.finish(stream);
      if (kind === EventKind.MESSAGE) this.#message(stream);
    };
  }

  open(total: number): void {
    const id = this.#end.connection.streams.open();
    if (id >= 0) this.writers.set(id, new Writer(this.#end, id, total, 1 + (total % 20_000)));
  }

  send(data: Uint8Array): void {
    if (this.#end.connection.messages.send(data) >= 0) this.messages++;
  }

  /** Our own streams that are to arrive whole at `other` and have not. */
  missing(other: Application): number[] {
    return [...this.writers.keys()].filter((id) => !this.givenUp.has(id) && !other.reader.ended.has(id));
  }

  #message(stream: number): void {
    this.received++;
    const data = this.#end.connection.messages.read(stream);
    if (!matches(data.length, 0, data)) this.wrong++;
  }
}

export const transferTarget: Target = {
  name: 'core.transfers',
  weight: 5,
  iterate(random) {
    const core = Core.create({
      connections: 2,
      memory: pick(random, [2_500_000, 8_000_000]),
      streams: 64 + below(random, 200),
      connectionWindow: pick(random, [0, 300_000, 16_000_000]),
      ...(chance(random, 0.3) ? { streamSegments: 64 + below(random, 400) } : {}),
    });
    const clean = core.stats();
    const delay = pick(random, [1, 20, 150]);
    const pair = new Pair({
      core,
      seed: random.u32(),
      link: { loss: 0.01, delay, jitter: delay / 3, duplicate: 0.01 },
      line: new Line(pick(random, [2e6, 50e6]), 60_000),
      initiator: { congestion: pick(random, ['newreno', 'cubic', 'bbr'] as const) },
      responder: { congestion: pick(random, ['newreno', 'cubic', 'bbr'] as const) },
      parameters: {
        idleTimeout: 0,
        initialMaxData: 133_120 + below(random, 500_000),
        initialMaxStreamData: 1_024 + below(random, 60_000),
        maxStreams: 1 + below(random, core.maxPeerStreams),
        maxMessages: 1 + below(random, core.maxPeerMessages),
      },
    });
    const givenUp = new Set<number>();
    const applications = pair.ends.map((end) => new Application(end, givenUp, 1 + below(random, 30_000))) as [Application, Application];
    for (let i = 0; i < ACTIONS; i++) {
      const side = below(random, 2);
      act(random, pair.ends[side] as End, applications[side] as Application);
      pair.run(below(random, chance(random, 0.1) ? 3_000 : 60));
    }
    const [near, far] = applications;
    const done = () =>
      near.missing(far).length + far.missing(near).length === 0 && near.messages === far.received && far.messages === near.received;
    if (!pair.run(END, done)) {
      const left = `streams ${near.missing(far)} and ${far.missing(near)}, messages ${near.messages}:${far.received} and ${far.messages}:${near.received}`;
      throw new Error(`not everything has arrived: ${left}`);
    }
    const wrong = applications.map(({ reader, wrong: messages }) => reader.wrong + messages);
    if (wrong.some((count) => count > 0)) throw new Error(`wrong bytes arrived: ${wrong}`);
    pair.free();
    const left = core.stats();
    for (const name of ['freeChunks', 'freeSlots', 'connections', 'byteStreams', 'messagesIn', 'messagesOut'] as const) {
      if (left[name] !== clean[name]) throw new Error(`${name} was ${clean[name]} and is ${left[name]}`);
    }
  },
};

/** A call of the application. */
function act(random: Random, { connection }: End, application: Application): void {
  // a byte stream, of either end
  const id = below(random, 100) & ~2;
  switch (below(random, 10)) {
    case 0:
    case 1:
    case 2:
      application.open(below(random, pick(random, [10, 5_000, 200_000])));
      break;
    case 3:
    case 4:
      application.send(message(below(random, pick(random, [10, 2_000, 66_560]))));
      break;
    case 5:
      connection.updateKey();
      break;
    case 6:
      connection.streams.setWeight(id, 1 + below(random, 256));
      break;
    case 7:
      connection.streams.raiseWindow(id, below(random, 1 << 22));
      break;
    case 8:
      connection.streams.stats(id);
      connection.stats();
      break;
    default:
      if (!chance(random, 0.3)) break;
      application.givenUp.add(id);
      pick(random, [() => connection.streams.reset(id, 9), () => connection.streams.stop(id, 9)])();
  }
}

/** A message whose length determines its content. */
function message(length: number): Uint8Array {
  return content(length, 0, length);
}
