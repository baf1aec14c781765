/**
 * An attacker beside the path that knows everything sent in the clear, above all connection ids, and may forge any
 * source address, but has no key: 100,000 forged packets a second. In virtual time only their effects count, not the
 * processor time they take.
 *
 * @module-tag slow
 */
import { describe, expect, it } from 'vitest';
import { ID_LENGTH, PacketType } from '../../../protocol/packet/index.ts';
import { Random, type SimulatedPacket, type SocketAddress } from '../../../testing/index.ts';
import { seeds } from '../../support/tiered.ts';
import { PORT } from '../stack/support.ts';
import { download, type FileBench, fileBench, MB } from './support.ts';

const RATE = 100_000;
/** The device's line; the direction towards it is not limited, so that the attack costs no bandwidth. */
const [down, up] = [{ delay: 10, rate: 50e6 }, { delay: 10 }];

describe('an off-path attacker with known connection ids', () => {
  const name = 'costs at most a fifth of the goodput and causes no migration (seed %d)';
  it.each(seeds(1, 1))(name, (seed) => costsLittle(seed, MB / 8));
  it.each(seeds(2, 5))(name, (seed) => costsLittle(seed, 5 * MB));

  async function costsLittle(seed: number, file: number): Promise<void> {
    const alone = await transfer(seed, file, false);
    const attacked = await transfer(seed, file, true);
    expect(attacked.forged).toBeGreaterThan((attacked.time / 1000) * RATE * 0.9);
    expect(alone.time / attacked.time).toBeGreaterThan(0.8);
    for (const { device, client } of [attacked.here]) {
      expect([device.stats(), client.stats()]).toMatchObject([
        { failures: 0, sessions: 1, halfOpenLost: 0, connections: 1 },
        { failures: 0, sessions: 1, connections: 1 },
      ]);
      expect(device.stats().unauthenticated! + client.stats().unauthenticated!).toBeGreaterThan(attacked.forged / 4);
    }
    // only the two ends received packets, except for the Resets that one of our ids earns: fewer and smaller than the
    // forged packets
    expect(attacked.answers.every((packet) => packet.data[0] === PacketType.RESET)).toBe(true);
    expect(attacked.answers.length).toBeLessThan(attacked.forged / 100);
  }
});

async function transfer(seed: number, file: number, isAttacked: boolean) {
  const here = await fileBench({ seed, link: down, files: [file] });
  const { simulation, clientHost, deviceHost } = here;
  simulation.link(deviceHost, clientHost, down, up);
  const session = await simulation.settle(here.connect());
  await simulation.settle(session.request({ method: 'POST', path: '/echo' }));
  const path = session.paths.active;
  const [accepted] = [...here.device.sessions];
  const acceptedPath = accepted!.paths.active;
  const answers: SimulatedPacket[] = [];
  simulation.onPacket = (packet) => {
    if (packet.to !== 'client' && packet.to !== 'device') answers.push(packet);
    return undefined;
  };
  const from = simulation.now;
  const attack = isAttacked ? new Attack(here, seed) : null;
  await simulation.settle(download(session, file, 0));
  attack?.stop();
  const time = simulation.now - from;
  expect([session.isOpen, accepted!.isOpen, session.paths.active === path, accepted!.paths.active === acceptedPath]).toEqual([
    true,
    true,
    true,
    true,
  ]);
  await simulation.run(100);
  const response = await simulation.settle(session.request({ method: 'POST', path: '/echo' }));
  expect(response.status).toBe(204);
  return { here, time, answers, forged: attack?.forged ?? 0 };
}

class Attack {
  forged = 0;
  readonly #here: FileBench;
  readonly #random: Random;
  readonly #ids: { client: Uint8Array; device: Uint8Array };
  readonly #ends: { client: SocketAddress; device: SocketAddress };
  #stopped = false;

  constructor(here: FileBench, seed: number) {
    this.#here = here;
    this.#random = new Random(`attack ${seed}`);
    const data = here.sent.filter((packet) => packet.data[0] === PacketType.DATA);
    const sample = (from: string) => data.find((packet) => packet.from === from)!;
    const id = (packet: SimulatedPacket) => packet.data.slice(1, 1 + ID_LENGTH);
    this.#ids = { device: id(sample('client')), client: id(sample('device')) };
    this.#ends = { client: sample('client').source, device: { address: here.deviceHost.addresses[0]!, port: PORT } };
    this.#burst();
  }

  stop(): void {
    this.#stopped = true;
  }

  /** 1 ms worth of packets. */
  #burst(): void {
    if (this.#stopped) return;
    for (let i = 0; i < RATE / 1000; i++) this.#forge(i % 2 === 0 ? 'device' : 'client');
    this.#here.clientHost.clock.schedule(1, () => this.#burst());
  }

  #forge(to: 'client' | 'device'): void {
    const random = this.#random;
    const kind = random.u32() % 8;
    const data = random.bytes(30 + (random.u32() % 60));
    // mostly Data with a valid id; otherwise any other packet that names it
    const types = [PacketType.DATA, PacketType.DATA_PHASE, PacketType.COMPLETE, PacketType.RESPOND, PacketType.RETRY, PacketType.RESET];
    data[0] = types[kind] ?? PacketType.DATA;
    data.set(this.#ids[kind === 5 ? (to === 'client' ? 'device' : 'client') : to], 1);
    // alternating between the other end's address, which goes over its link, and the attacker's own
    const other = to === 'client' ? 'device' : 'client';
    const source = to === 'device' && random.fraction() < 0.5 ? this.#ends[other] : { address: '203.0.113.66', port: 666 };
    this.#here.simulation.inject(source, this.#ends[to], data);
    this.forged++;
  }
}
