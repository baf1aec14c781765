/**
 * WebSockets under passing faults: links that lose, stalls, sleep, moves and back, proxies. Each message arrives once,
 * in order, and `sent` is called once for each.
 */
import { describe, expect, it } from 'vitest';
import { type MessagePipe, Random, type SimulatedHost, Simulation } from '../../testing/index.ts';
import { seeds } from '../support/tiered.ts';

const MESSAGES = 60;
const HOME = '192.0.2.10/24';
const AWAY = '198.51.100.20/24';

/** One end: numbers its messages and records the received ones. */
class End {
  readonly got: number[] = [];
  readonly sent: number[] = [];
  ended = 0;
  #given = 0;

  readonly handlers = {
    receive: (message: Uint8Array): void => void this.got.push(new DataView(message.buffer).getUint16(0)),
    closed: (): void => void this.ended++,
  };

  send(pipe: MessagePipe, length: number): void {
    const number = this.#given++;
    const message = new Uint8Array(length);
    new DataView(message.buffer).setUint16(0, number);
    pipe.send(message, () => this.sent.push(number));
  }
}

/** A fault of the pipe for a while, and its end. */
function fault(random: Random, simulation: Simulation, laptop: SimulatedHost): () => void {
  const [pipe] = simulation.pipes(laptop);
  const options = [
    () => {
      pipe!.stall();
      return () => pipe!.resume();
    },
    () => {
      laptop.sleep();
      return () => laptop.wake();
    },
    () => {
      simulation.move(laptop, { addresses: [AWAY] });
      return () => simulation.move(laptop, { addresses: [AWAY, HOME] });
    },
    () => {
      const link = { delay: 5 + 50 * random.fraction(), rate: 200_000 };
      simulation.link(laptop, 'station', { ...link, loss: 0.4, burst: 3 }, { ...link, loss: 1 });
      return () => simulation.link(laptop, 'station', { ...link, reorder: 0.3, duplicate: 0.3, corrupt: 0.1 });
    },
    () => simulation.block('station', 'tcp'),
    () => {
      pipe!.batch(300);
      return () => pipe!.batch(0);
    },
  ];
  return options[Math.floor(random.fraction() * options.length)]!();
}

describe('a pipe under passing faults', () => {
  it.each(seeds(1, 10))('delivers everything once and in order, seed %i', delivers);
  it.each(seeds(11, 300))('delivers everything once and in order, seed %i', { tags: ['slow'] }, delivers);

  async function delivers(seed: number): Promise<void> {
    const random = new Random(`pipe ${seed}`);
    const simulation = new Simulation({ seed, link: { delay: 20, rate: 1e6, loss: 0.05 } });
    const laptop = simulation.host('laptop', { addresses: [HOME], sendBuffer: seed % 2 === 0 ? 0 : 5000 });
    const station = simulation.host('station', { addresses: ['203.0.113.1/24'] });
    const [here, there] = [new End(), new End()];
    let far: MessagePipe | undefined;
    const accept = (pipe: MessagePipe) => {
      far = pipe;
      return there.handlers;
    };
    station.listenWebSocket({ port: 80, protocol: 'p', accept });
    const near = await simulation.settle(
      laptop.network.openWebSocket!({ url: 'ws://station/', protocol: 'p', timeout: 60_000, ...here.handlers }),
    );
    for (let i = 0; i < MESSAGES; ) {
      const restore = random.fraction() < 0.5 ? fault(random, simulation, laptop) : () => {};
      for (let burst = Math.floor(random.fraction() * 8); burst > 0 && i < MESSAGES; burst--, i++) {
        here.send(near, 2 + Math.floor(random.fraction() ** 4 * 60_000));
        there.send(far!, 2 + Math.floor(random.fraction() ** 4 * 60_000));
      }
      await simulation.run(2000 * random.fraction());
      restore();
      await simulation.run(500 * random.fraction());
    }
    await simulation.run();
    const all = Array.from({ length: MESSAGES }, (_, i) => i);
    for (const end of [here, there]) expect(end).toMatchObject({ got: all, sent: all, ended: 0 });
  }
});
