/**
 * Keeps a connection through a base station alive: a device that is silent while its base station is not is gone, and a
 * lost route is replaced by another one (`connect/keep-route.ts`).
 */
import type { Environment } from '../platform/environment.ts';
import { CloseCode, type SvcError } from '../protocol/errors/index.ts';
import type { Path } from '../protocol/path.ts';
import type { Host } from '../runtime/host/index.ts';
import type { Session } from '../runtime/session/index.ts';
import type { StationConnector } from '../runtime/station/index.ts';
import { needsRoute, searchRoute } from './connect/keep-route.ts';
import type { DirectPaths } from './direct-paths.ts';
import { type EffectiveOptions, keepAliveWish } from './options.ts';

export interface RouteRecoveryOptions {
  readonly session: Session;
  readonly options: EffectiveOptions;
  readonly environment: Environment;
  readonly directPaths: Pick<DirectPaths, 'channelOf' | 'keepAliveInterval' | 'warmInterval'>;
  readonly host: () => Promise<Host>;
  /** Returns the connector to the base station of the options. */
  readonly connector: () => Promise<StationConnector>;
}

/** Watches one session until it ends. */
export class RouteRecovery {
  readonly #options: RouteRecoveryOptions;
  /**
   * When the device was last heard from before its latest silence, and the path of the channel to the base station at
   * that time.
   */
  #asked: { readonly heardAt: number; readonly over: Path } | null = null;
  /** Set during a search. */
  #searching: AbortController | null = null;

  constructor(options: RouteRecoveryOptions) {
    const { session } = options;
    this.#options = options;
    session.on('suspected', () => this.#noteAsked());
    session.on('resting', (reason) => void this.#rests(reason));
    session.on('probed', ({ path, forgotten }) => forgotten && path.kind === 'route' && void this.#search());
    session.on('closed', () => this.#searching?.abort());
  }

  async #rests(reason: SvcError): Promise<void> {
    const { session } = this.#options;
    if (reason.code === 'TIMEOUT' && this.#isDeviceGone() && session.restReason !== null) session.end(reason, CloseCode.NO_ERROR);
    else await this.#search();
  }

  /**
   * Whether the device is silent while the base station is not. An application that sets the keep-alive, or uses the
   * profile `live`, has thereby set how long the device may be silent. From the second probe on, the base station is
   * probed along with the device; so it counts if it was heard after the first probe that the device did not answer. If
   * the channel has migrated meanwhile, for example to a WebSocket, earlier probes did not reach the base station.
   */
  #isDeviceGone(): boolean {
    const { session, options, directPaths } = this.#options;
    const { profile, explicit } = keepAliveWish(options);
    if (profile !== 'live' && Object.keys(explicit).length === 0) return false;
    const channel = directPaths.channelOf(session);
    if (channel?.isOpen !== true || (this.#asked !== null && this.#asked.over !== channel.paths.active)) return false;
    return channel.connection.heardAt > session.connection.heardAt + directPaths.keepAliveInterval(session);
  }

  /** Notes the start of a silence: the device has not answered for a moment. */
  #noteAsked(): void {
    const { session, directPaths } = this.#options;
    const { heardAt } = session.connection;
    const channel = directPaths.channelOf(session);
    if (channel !== null && this.#asked?.heardAt !== heardAt) this.#asked = { heardAt, over: channel.paths.active };
  }

  /** With a base station, the connection survives the loss of its route or its last path. */
  async #search(): Promise<void> {
    const { session, options, environment, directPaths, host, connector } = this.#options;
    if (this.#searching !== null || !needsRoute(session)) return;
    const searching = new AbortController();
    this.#searching = searching;
    const { signal } = searching;
    try {
      const keepInterval = directPaths.warmInterval;
      await searchRoute({ session, host: await host(), options, connector: await connector(), keepInterval, signal });
    } catch (error) {
      environment.log.debug('the search for a route failed', { error: String(error) });
    } finally {
      this.#searching = null;
    }
  }
}
