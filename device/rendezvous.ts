/**
 * Direct paths of a device: the clients with which it searches for one, the addresses that it offers, and why a
 * connection is not direct (PROTOCOL.md §6). `runtime/rendezvous/` does the network part.
 */
import { ConnectionPath, DevicePath, type SocketAddress } from '../protocol/control/index.ts';
import type { KeepAliveProfile } from '../protocol/keep-alive/index.ts';
import {
  type AttemptFacts,
  deviceLimits,
  disabledByPeer,
  explain,
  HostBudget,
  type NotDirect,
  notDirect,
  udpBlocked,
} from '../protocol/rendezvous/index.ts';
import type { Host, KeepAlive } from '../runtime/host/index.ts';
import { HostKeepAlive } from '../runtime/keep-alive/index.ts';
import {
  LocalEnd,
  type PathsReport,
  type PathTimes,
  type PeerTrust,
  pathReports,
  RendezvousResponder,
  rendezvousHost,
  restReport,
  type StationView,
  stationReport,
  stationView,
} from '../runtime/rendezvous/index.ts';
import type { RoamingEvent } from '../runtime/roaming/index.ts';
import type { Session } from '../runtime/session/index.ts';
import { askAddress } from '../runtime/station/index.ts';
import type { CoapResources } from './coap-resources.ts';
import type { RendezvousSettings } from './rendezvous-options.ts';

const ask = (channel: Session): Promise<SocketAddress | null> => askAddress(channel, DevicePath.ADDRESS);

export interface DeviceRendezvousOptions {
  readonly host: Host;
  readonly settings: RendezvousSettings;
  readonly resources: CoapResources;
  /** Whether the client of a session is paired, or has proved a password. */
  isKnown(session: Session): boolean;
  /** Host of the base station, null without one. */
  readonly stationName: string | null;
  /** The channel to the base station, null while there is none. */
  channel(): Session | null;
  readonly keepAliveProfile: KeepAliveProfile;
}

/** Direct paths of a running device. */
export class DeviceRendezvous {
  readonly #options: DeviceRendezvousOptions;
  readonly #end: LocalEnd;
  readonly #responder: RendezvousResponder;
  readonly #keepAlive: HostKeepAlive;

  constructor(options: DeviceRendezvousOptions) {
    const { host, settings } = options;
    this.#options = options;
    const isOn = settings.mode !== 'off';
    this.#end = new LocalEnd(rendezvousHost(host), {
      stated: settings.candidates,
      excluded: settings.noCandidatesOn,
      mapsPort: isOn && settings.portMapping !== 'off',
    });
    const { gatherer } = this.#end;
    this.#keepAlive = new HostKeepAlive({
      environment: host.environment,
      isNear: (address) => gatherer.isNear(address),
      onChange: (callback) => gatherer.onChange(callback),
      channelOf: () => options.channel(),
      ask,
    });
    this.#responder = new RendezvousResponder({
      end: this.#end,
      budget: new HostBudget(deviceLimits),
      hardNat: settings.hardNat,
      trustOf: (session) => this.#trustOf(session),
      station: () => this.#station(options.stationName),
      peerAddress: (session) => this.#peerAddress(session),
    });
    options.resources.addProtocol('POST', ConnectionPath.RENDEZVOUS, (request) => this.#responder.begin(request));
    options.resources.addProtocol('PUT', ConnectionPath.RENDEZVOUS, (request) => this.#responder.update(request));
  }

  /** Reports the paths of a client's connection. */
  report(session: Session, times: PathTimes): PathsReport {
    const facts = this.#responder.facts(session);
    return {
      paths: pathReports(session, times, (address) => this.#end.gatherer.isNear(address)),
      rest: restReport(session),
      station: stationReport(this.#station(null), this.#end.gatherer),
      localNat: facts?.localNat ?? null,
      remoteNat: facts?.remoteNat ?? null,
      pairs: facts?.pairs ?? [],
      whyNotDirect: session.paths.type === 'DIRECT' ? null : this.#why(session, facts),
      nextAttempt: null,
      keepAlive: this.#keepAlive.report(this.#options.channel()),
    };
  }

  /** Starts port mapping, once the device is attached. */
  attached(): void {
    this.#end.mapPort(this.#station(null));
  }

  /**
   * Keeps the channel of an attach alive as its profile says.
   * @param bound limits from the base station, null for none
   */
  keepAlive(channel: Session, bound: KeepAlive | null): void {
    this.#keepAlive.followChannel(channel, { profile: this.#options.keepAliveProfile, ...(bound !== null && { bound }) });
  }

  /** Handles a change of the device's network. */
  networkEvent(event: RoamingEvent): void {
    if (event === 'changed' || event === 'reverted') {
      this.#keepAlive.networkChanged();
      this.#end.networkChanged();
    } else if (event !== 'migrated') this.#keepAlive.interrupted();
  }

  #station(name: string | null): StationView | null {
    return stationView(this.#options.channel(), name, ask);
  }

  /** Ends every round, and deletes the mappings as far as routers answer within a second. */
  async close(): Promise<void> {
    this.#keepAlive.close();
    this.#responder.close();
    await this.#end.close();
  }

  /** Returns this end's reason: the client decides, and does not send its own. */
  #why(session: Session, facts: AttemptFacts | null): NotDirect {
    if (!this.#trustOf(session).isWelcome) return notDirect('DISABLED');
    if (this.#responder.isOngoing(session)) return notDirect('IN_PROGRESS');
    if (this.#responder.wasBusy(session)) return notDirect('LIMITED');
    if (facts !== null) return this.#station(null)?.webSocket === undefined ? explain(facts) : udpBlocked;
    // The station names the client's address where the client wants a direct path.
    return this.#peerAddress(session) === undefined ? disabledByPeer : notDirect('IN_PROGRESS');
  }

  #trustOf(session: Session): PeerTrust {
    const { mode } = this.#options.settings;
    const isKnown = this.#options.isKnown(session);
    return { peer: isKnown ? 'known' : 'stranger', isWelcome: mode === 'anyone' || (mode === 'paired' && isKnown) };
  }

  #peerAddress(session: Session): SocketAddress | undefined {
    const route = session.paths.all.find(({ kind }) => kind === 'route');
    return route === undefined ? undefined : this.#options.host.routes.peerAddress(route);
  }
}
