/**
 * Whole sessions over a link with 1 % loss, sometimes with corruption or an outage: a client and a device whose
 * applications make random and wrong calls of the API.
 *
 * Every call either works or fails with an error of the catalogue; a driver never throws; every promise is settled in
 * the end; and when everything is closed both cores have all their memory back.
 */
import { Core, type CoreStats } from '../../bindings/index.ts';
import { SvcError } from '../../protocol/errors/index.ts';
import { Host } from '../../runtime/host/index.ts';
import type { Session, Stream } from '../../runtime/session/index.ts';
import type { Random, SimulatedHost, Simulation } from '../../testing/index.ts';
import { NAME, PORT, StreamPort, startDevice } from '../runtime/stack/support.ts';
import { openedStream } from '../support/opened-stream.ts';
import { nativeSimulation } from '../support/simulation.ts';
import { below, chance, pick } from './mutate.ts';
import type { Target } from './target.ts';

const ACTIONS = 80;
const MEMORY = 4 << 20;
/** Virtual ms in which everything has ended. */
const END = 600_000;

export const sessionTarget: Target = { name: 'sessions', weight: 15, iterate: (random) => new SessionFuzz(random).run() };

class SessionFuzz {
  readonly #random: Random;
  readonly #simulation: Simulation;
  readonly #errors: string[] = [];
  readonly #cores: { core: Core; clean: CoreStats }[] = [];
  readonly #sessions: Session[] = [];
  readonly #streams: Stream[] = [];
  #client: Host | null = null;
  #clientHost: SimulatedHost | null = null;
  #deviceHost: SimulatedHost | null = null;
  #pending = 0;

  constructor(random: Random) {
    this.#random = random;
    const delay = pick(random, [1, 20, 150]);
    this.#simulation = nativeSimulation({
      seed: random.u32(),
      link: {
        loss: 0.01,
        corrupt: pick(random, [0, 0.005]),
        outages: chance(random, 0.1) ? [{ from: below(random, 3000), length: below(random, 90_000) }] : [],
        delay,
        jitter: delay / 4,
        reorder: 0.02,
        duplicate: 0.01,
        rate: pick(random, [2e6, 50e6]),
      },
      log: (host, level, message, fields) => {
        if (level === 'error') this.#errors.push(`${host}: ${message} ${JSON.stringify(fields)}`);
      },
    });
  }

  async run(): Promise<void> {
    const simulation = this.#simulation;
    const [deviceHost, clientHost] = [this.#host('device'), this.#host('client')];
    const limits = { connections: 3, streams: 1 + below(this.#random, 20) };
    const device = await simulation.settle(startDevice(deviceHost, { ...this.#config(deviceHost), limits }));
    const client = await simulation.settle(Host.open(clientHost, { ...this.#config(clientHost), binds: [{ port: 0 }, { port: 0 }] }));
    [this.#client, this.#clientHost, this.#deviceHost] = [client, clientHost, deviceHost];
    this.#watch(this.#connect(client, deviceHost));
    for (let i = 0; i < ACTIONS; i++) {
      if (chance(this.#random, 0.1)) this.#watch(this.#connect(client, deviceHost));
      else
        this.#guard(() =>
          this.#act(chance(this.#random, 0.7) ? pick(this.#random, this.#sessions) : pick(this.#random, [...device.sessions])),
        );
      await simulation.run(below(this.#random, chance(this.#random, 0.1) ? 5000 : 60));
    }
    if (chance(this.#random, 0.5)) await this.#leavesNothing(client, device);
    this.#watch(pick(this.#random, [client, device]).close());
    await simulation.run(below(this.#random, 5000));
    this.#watch(client.close());
    this.#watch(device.close());
    await simulation.run(END);
    for (const host of [client, device]) {
      const { failures, sessions } = host.stats();
      if (failures !== 0 || sessions !== 0) this.#errors.push(`${failures} exceptions in a driver, ${sessions} sessions left`);
    }
    if (this.#pending > 0) this.#errors.push(`${this.#pending} promises are never settled`);
    if (this.#errors.length > 0) throw new Error(this.#errors.slice(0, 5).join('\n'));
  }

  /** Ends all sessions and compares the cores with their initial state. */
  async #leavesNothing(client: Host, device: Host): Promise<void> {
    await this.#simulation.run(30_000);
    for (const session of [...client.sessions, ...device.sessions]) this.#watch(session.close());
    await this.#simulation.run(END);
    for (const { core, clean } of this.#cores) {
      const left = core.stats();
      for (const name of ['freeChunks', 'freeSlots', 'connections', 'byteStreams', 'messagesIn', 'messagesOut'] as const) {
        if (left[name] !== clean[name]) this.#errors.push(`${name} was ${clean[name]} and is ${left[name]}`);
      }
    }
  }

  #host(name: string): SimulatedHost {
    const host = this.#simulation.host(name);
    host.createCore = async (options) => {
      const core = Core.create(options);
      this.#cores.push({ core, clean: core.stats() });
      return core;
    };
    return host;
  }

  #config(host: SimulatedHost) {
    const random = this.#random;
    return {
      identity: host.crypto.generateKey(),
      core: { memory: MEMORY, connections: 8, streams: 16 + below(random, 200) },
      congestion: pick(random, ['newreno', 'cubic', 'bbr'] as const),
      parameters: {
        initialMaxData: 133_120 + below(random, 500_000),
        initialMaxStreamData: 1024 + below(random, 40_000),
        maxStreams: 1 + below(random, 40),
        maxMessages: 1 + below(random, 256),
        maxAckDelay: 1 + below(random, 25),
      },
    };
  }

  async #connect(client: Host, device: SimulatedHost): Promise<void> {
    const session = await client.dials.connect({
      address: pick(this.#random, device.addresses),
      port: PORT,
      name: NAME,
      timeout: 1 + below(this.#random, 20_000),
      ...this.#signal(0.1),
    });
    this.#sessions.push(session);
  }

  #act(session: Session | undefined): void {
    if (session === undefined) return;
    const random = this.#random;
    switch (below(random, 20)) {
      case 0:
      case 1:
      case 2:
        this.#watch(this.#request(session));
        break;
      case 3:
        this.#observe(session);
        break;
      case 4:
      case 5:
      case 6:
        this.#watch(this.#open(session));
        break;
      case 7:
        session.datagrams.send(random.bytes(below(random, 1400)));
        break;
      case 8:
        if (chance(random, 0.3)) this.#watch(session.close(below(random, 0x2000), 'x'.repeat(below(random, 300))));
        break;
      case 9:
        session.setKeepAlive(chance(random, 0.5) ? null : { interval: 100 + below(random, 30_000), retryInterval: 2000, maxRetries: 3 });
        break;
      case 10:
        session.notify(below(random, 20), { status: 205, observe: true, payload: random.bytes(10) });
        break;
      case 11:
        session.stats();
        break;
      case 12:
        session.connection.updateKey();
        break;
      case 13:
        this.#path(session);
        break;
      case 14:
        this.#simulation.rebind(this.#clientHost!, pick(random, ['port', 'port', 'address']));
        break;
      default:
        this.#stream(pick(random, this.#streams));
    }
  }

  async #request(session: Session): Promise<void> {
    const random = this.#random;
    const payload = random.bytes(below(random, pick(random, [1, 100, 5000, 200_000])));
    const path = pick(random, ['/echo', '/echo', '/nothing', 'bad path', '/%']);
    const method = pick(random, ['POST', 'POST', 'GET', 'DELETE'] as const);
    const response = await session.request({ method, path, payload, timeout: 1 + below(random, 120_000), ...this.#signal(0.1) });
    if (response.status !== 204) return;
    if (Buffer.compare(response.payload, payload) !== 0) this.#errors.push('an echo differs');
  }

  #observe(session: Session): void {
    const observation = session.observe({ method: 'GET', path: '/echo' }, () => {});
    if (chance(this.#random, 0.5)) observation.cancel();
  }

  /** Paths from either socket of the client, to addresses that the device may not even have. */
  #path(session: Session): void {
    const random = this.#random;
    const { connection } = session;
    const now = this.#simulation.now;
    const path = pick(random, this.#client!.sockets.bound).path(pick(random, ['192.0.2.77', ...this.#deviceHost!.addresses]), PORT);
    pick(random, [
      () => connection.paths.migrate(path, now),
      () => connection.paths.migrate(path, now),
      () => connection.paths.add(path, now, { keepInterval: below(random, 3) * 1000 }),
      () => connection.paths.probe(path, now),
      () => connection.paths.keep(path, below(random, 5000), now),
      () => connection.paths.remove(path),
      () => connection.paths.supplyIds(),
      () => connection.paths.stats(path),
    ])();
  }

  async #open(session: Session): Promise<void> {
    const port = pick(this.#random, [StreamPort.ECHO, StreamPort.ECHO, StreamPort.SINK, StreamPort.NEVER_READ, 99, -1, 2 ** 32]);
    const weight = chance(this.#random, 0.5) ? {} : { weight: below(this.#random, 300) };
    if (chance(this.#random, 0.5)) this.#streams.push(session.streams.open(port, weight));
    else this.#streams.push(await openedStream(session, port, { ...weight, ...this.#signal(0.1) }));
  }

  #stream(stream: Stream | undefined): void {
    if (stream === undefined) return;
    const random = this.#random;
    switch (below(random, 8)) {
      case 0:
      case 1:
        this.#watch(stream.write(random.bytes(below(random, pick(random, [1, 1000, 300_000])))));
        break;
      case 2:
        this.#watch(stream.read(chance(random, 0.5) ? 1 + below(random, 5000) : undefined));
        break;
      case 3:
        this.#watch(stream.readAll(below(random, 20_000)));
        break;
      case 4:
        this.#watch(stream.close());
        break;
      case 6:
        stream.setWeight(below(random, 300));
        break;
      case 5:
        if (chance(random, 0.3)) stream.abort(chance(random, 0.5) ? below(random, 9000) : undefined);
        break;
      default:
        stream.stats();
    }
  }

  /** Sometimes a signal that aborts some time later. */
  #signal(probability: number): { signal?: AbortSignal } {
    if (!chance(this.#random, probability)) return {};
    const controller = new AbortController();
    const delay = below(this.#random, 500);
    if (delay === 0) controller.abort();
    else this.#simulation.at(this.#simulation.now + delay, 0, () => controller.abort());
    return { signal: controller.signal };
  }

  #guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#failed(error);
    }
  }

  #watch(promise: Promise<unknown>): void {
    this.#pending++;
    promise.catch((error) => this.#failed(error)).finally(() => this.#pending--);
  }

  #failed(error: unknown): void {
    if (error instanceof SvcError && error.code !== 'CORE_FAILED') return;
    this.#errors.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
}
