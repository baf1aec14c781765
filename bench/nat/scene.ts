/**
 * A client and a device, each behind a box of some kind, and the decisions of both about a direct path. The products'
 * own code runs over plain simulated sockets, without an engine between them. Messages of the connection arrive after
 * the relay's delay. The base station consists of its STUN and the addresses that it sees.
 *
 * The round trip between any two hosts is 50 ms, with up to 2 ms of jitter.
 */

import { nativeCrypto } from '../../platform/node/crypto.ts';
import type { Path } from '../../protocol/path.ts';
import { clientLimits, deviceLimits, HostBudget, type NotDirectCode } from '../../protocol/rendezvous/index.ts';
import {
  DirectSearch,
  LocalEnd,
  type PathsReport,
  RendezvousResponder,
  Searches,
  type SearchKind,
  type ServingSession,
  type StationView,
} from '../../runtime/rendezvous/index.ts';
import { Stun } from '../../server/station/stun.ts';
import { type SimulatedHost, Simulation } from '../../testing/index.ts';
import { type Home, type HomeOptions, homeOf, type NatKind } from './kinds.ts';
import { PlainHost } from './plain-host.ts';
import { Signalling } from './signalling.ts';

/** The paths of a scene need no keep-alive. */
const NO_KEEP_ALIVE: Pick<SearchKind, 'keepInterval' | 'keepAliveReport'> = {
  keepInterval: () => 25_000,
  keepAliveReport: () => ({ state: 'off', timeout: null, isAtLeast: false, losses: 0, interval: null }),
};

/** One way between two hosts, ms. */
const DELAY = 24;
const JITTER = 2;
/** One way between the ends through the base station, ms. */
const RELAY_DELAY = 2 * DELAY + 2;
const STATION = { address: '203.0.113.1', port: 4_500 };
const CLIENT_PORT = 50_001;
const DEVICE_PORT = 5_600;
/** ms from when both ends reach the base station until the connection is established. */
const ESTABLISHED = 200;

export interface SceneOptions {
  readonly client: NatKind;
  readonly device: NatKind;
  readonly seed: number;
  /** Options of the boxes, which replace those of the kinds. */
  readonly boxes?: Readonly<Record<'client' | 'device', HomeOptions>>;
  /** One way between the ends through the base station, ms. Default 50. */
  readonly relayDelay?: number;
  /** Flows a second that other hosts behind each sequential NAT begin. Default 0. */
  readonly foreign?: number;
  /** Share of datagrams lost once the connection is established. Default 0. */
  readonly loss?: number;
  /** ms after which no direct path counts as found. Default 15,000. */
  readonly limit?: number;
}

/** Result of a scene. */
export interface SceneResult {
  /** ms from the established connection until a path carried packets of full size both ways; null if none did. */
  readonly time: number | null;
  /** The path in use. */
  readonly path: Path;
  /** Why the path is not direct. */
  readonly why: NotDirectCode | null;
  /** Bytes of the rendezvous on the relay. */
  readonly relayed: number;
  readonly report: PathsReport;
}

/** Runs one scene until it has a direct path, or to its end. */
export async function runScene(options: SceneOptions): Promise<SceneResult> {
  const scene = new Scene(options);
  try {
    return await scene.run();
  } finally {
    scene.close();
  }
}

/** The parties of a scene. */
export class Scene {
  readonly simulation: Simulation;
  readonly station: SimulatedHost;
  readonly client: Party;
  readonly device: Party;
  signalling: Signalling;
  readonly #options: SceneOptions;
  #budget = new HostBudget(clientLimits);
  readonly #relayDelay: number;
  #view: (() => StationView) | null = null;
  #search: DirectSearch | null = null;
  #responder: RendezvousResponder<ServingSession> | null = null;

  constructor(options: SceneOptions) {
    const { client, device, seed, boxes, relayDelay = RELAY_DELAY, foreign = 0 } = options;
    this.#options = options;
    // Each cell has its own seed.
    this.simulation = new Simulation({
      seed: `${client} × ${device} ${seed}`,
      crypto: nativeCrypto,
      link: { delay: DELAY, jitter: JITTER },
    });
    this.station = this.simulation.host('station', { addresses: [`${STATION.address}/24`, '2001:db8:ffff::1/64'] });
    this.client = new Party(homeOf(this.simulation, client, 'client', 1, boxes?.client), CLIENT_PORT);
    this.device = new Party(homeOf(this.simulation, device, 'device', 2, boxes?.device), DEVICE_PORT);
    for (const { home } of [this.client, this.device]) if (home.kind === 'sequential') for (const box of home.boxes) box.occupy(foreign);
    this.#relayDelay = relayDelay;
    this.signalling = this.#newSignalling();
  }

  /** Runs the scene: both ends reach the base station, then the client looks for a direct path. */
  async run(): Promise<SceneResult> {
    return this.#outcome(await this.begin());
  }

  /**
   * Ends the connection of the client, and runs the scene of the next one `pause` ms later.
   * @param isOther of another client with the same key, in the same place
   */
  async again(pause: number, isOther = false): Promise<SceneResult> {
    if (isOther) this.#budget = new HostBudget(clientLimits);
    this.#search?.stop();
    this.signalling.device.end();
    const until = this.simulation.now + pause;
    this.client.host.environment.clock.schedule(pause, () => {});
    await this.simulation.run(() => this.simulation.now >= until);
    this.signalling = this.#newSignalling();
    return this.#outcome(this.#look());
  }

  async #outcome(search: DirectSearch): Promise<SceneResult> {
    const { limit = 15_000 } = this.#options;
    const from = this.simulation.now;
    // Time must pass even with nothing left to do.
    this.client.host.environment.clock.schedule(limit, () => {});
    await this.simulation.run(() => this.signalling.type === 'DIRECT' || this.simulation.now >= from + limit);
    const report = search.report();
    const isDirect = this.signalling.type === 'DIRECT';
    return {
      time: isDirect ? this.simulation.now - from : null,
      path: this.signalling.active,
      why: report.whyNotDirect?.code ?? null,
      relayed: this.signalling.bytes,
      report,
    };
  }

  /** Runs the scene until the client begins to look. */
  async begin(): Promise<DirectSearch> {
    const { client, device, station } = this;
    const seen = new Map<string, Pick<StationView, 'observed'>>();
    const main = station.bind({
      port: STATION.port,
      receive: (datagram, { address, port }) => void seen.set(String(datagram[0]), { observed: { address, port } }),
    });
    const stun = new Stun({ environment: station, mainPort: STATION.port, stunPort: null, stunAddress: null });
    await stun.opened;
    for (const [i, { host }] of [client, device].entries()) host.send(Uint8Array.of(i), host.socket.path(STATION.address, main.port));
    await this.simulation.run(ESTABLISHED);
    this.#lose();
    const viewOf = (end: number): StationView => ({
      at: STATION,
      observed: seen.get(String(end))?.observed ?? null,
      stun: stun.servers,
      name: null,
      ask: async () => seen.get(String(end))?.observed ?? null,
    });
    this.#responder = new RendezvousResponder<ServingSession>({
      end: device.end,
      budget: new HostBudget(deviceLimits),
      hardNat: true,
      trustOf: () => ({ peer: 'known', isWelcome: true }),
      station: () => viewOf(1),
      peerAddress: () => viewOf(0).observed ?? undefined,
    });
    this.#view = () => viewOf(0);
    return this.#look();
  }

  /** The client of the current connection begins to look. */
  #look(): DirectSearch {
    const { client, signalling } = this;
    signalling.serve(this.#responder!);
    const { clock, log } = client.host.environment;
    const search = new DirectSearch({
      session: signalling,
      shared: new Searches(client.end, this.#budget, { clock, log }),
      kind: { hardNat: true, ...NO_KEEP_ALIVE, stationOf: () => this.#view!() },
    });
    signalling.on('path', ({ path }) => search.migrated(path));
    this.#search = search;
    return search;
  }

  #newSignalling(): Signalling {
    const { clock, log } = this.client.host.environment;
    return new Signalling({ client: this.client.host, clock, log, delay: this.#relayDelay });
  }

  #lose(): void {
    const { loss = 0 } = this.#options;
    const names = [this.client.home.host, this.device.home.host, this.station];
    for (const [i, one] of names.entries())
      for (const other of names.slice(i + 1)) this.simulation.link(one, other, { delay: DELAY, jitter: JITTER, loss });
  }

  close(): void {
    this.#search?.stop();
    this.#responder?.close();
    for (const host of [this.client.host.environment, this.device.host.environment, this.station]) host.stop();
  }
}

/** One end: its host, and the state that its connections share. */
class Party {
  readonly home: Home;
  readonly host: PlainHost;
  readonly end: LocalEnd;

  constructor(home: Home, port: number) {
    this.home = home;
    this.host = new PlainHost(home.host, port);
    this.end = new LocalEnd(this.host, { mapsPort: false });
  }
}
