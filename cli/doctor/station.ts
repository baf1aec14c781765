/**
 * Checks a base station without a device: whether it is reachable and authentic, and what its STUN port reports about
 * this host.
 *
 * The base station names its STUN ports only in the answer to a connect. Here the default is probed, the port after its
 * own, unless another one is given.
 */
import type { Environment, NatReport, SocketAddress, StunAnswer } from '../../client/node.ts';
import { serverAddress } from '../../client/options.ts';
import { ClientPath } from '../../protocol/control/index.ts';
import { asSvcError, type SvcError } from '../../protocol/errors/index.ts';
import { Host } from '../../runtime/host/index.ts';
import { Gatherer, rendezvousHost, StunDispatcher } from '../../runtime/rendezvous/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import { askAddress, type ConfiguredStation, StationConnector } from '../../runtime/station/index.ts';
import type { TargetStation } from '../client/station.ts';

const MAX_PORT = 0xffff;

export interface StationCheckOptions {
  readonly station: TargetStation;
  /** URL of the WebSocket to it; undefined: derived from its own. */
  readonly webSocket: string | undefined;
  /** UDP port of STUN; default the one after that of the base station. */
  readonly stunPort: number | undefined;
  /** Interfaces to leave out. */
  readonly excluded: readonly string[];
  /** ms */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/** The result of the check. */
export interface StationCheck {
  readonly url: string;
  readonly verified: 'pinned' | 'tls';
  /** Its address; null when it was not reached, because of `error`. */
  readonly at: SocketAddress | null;
  /** How it was reached. */
  readonly over: 'udp' | 'websocket';
  readonly proxy: string | null;
  readonly error: SvcError | null;
  readonly stun: readonly StunAnswer[];
  readonly nat: NatReport | null;
}

/** @throws the errors of opening a socket */
export async function checkStation(environment: Environment, options: StationCheckOptions): Promise<StationCheck> {
  const { station, timeout, signal } = options;
  const { url, fingerprint } = station;
  const about = { url, verified: fingerprint === null ? 'tls' : 'pinned' } as const;
  const host = await Host.open(environment, { identity: environment.crypto.generateKey(), binds: [{ port: 0 }] });
  const connector = new StationConnector({ host, station: configured(options) });
  try {
    const found = await connector.use((channel) => askStun(host, channel, options), { timeout, signal });
    return { ...about, ...found, error: null };
  } catch (error) {
    signal.throwIfAborted();
    return { ...about, at: null, over: 'udp', proxy: null, error: asSvcError(error), stun: [], nat: null };
  } finally {
    await connector.close();
    await host.close();
  }
}

async function askStun(
  host: Host,
  channel: Session,
  { stunPort, excluded }: StationCheckOptions,
): Promise<Pick<StationCheck, 'at' | 'over' | 'proxy' | 'stun' | 'nat'>> {
  const { address, port, kind, proxy = null } = channel.paths.validated;
  const at = { address, port };
  if (kind === 'websocket') return { at, over: 'websocket', proxy, stun: [], nat: null };
  const asked = stunPort ?? port + 1;
  const rendezvous = rendezvousHost(host);
  const dispatcher = new StunDispatcher(rendezvous);
  const gatherer = new Gatherer({ host: rendezvous, dispatcher, excluded });
  const observed = await askAddress(channel, ClientPath.ADDRESS);
  const ask = async (): Promise<SocketAddress | null> => observed;
  const view = { at, observed, name: null, ask, stun: asked > MAX_PORT ? [] : [{ port: asked }] };
  try {
    return await new Promise((resolve) => {
      gatherer.gather(view, false, ({ isComplete, nat = null }) => {
        if (isComplete) resolve({ at, over: 'udp', proxy: null, stun: gatherer.stunAnswers(view), nat });
      });
    });
  } finally {
    dispatcher.close();
  }
}

function configured({ station: { url, fingerprint, roots }, webSocket }: StationCheckOptions): ConfiguredStation {
  const ways = { ...(roots !== '' && { rootCerts: roots }), ...(webSocket !== undefined && { webSocket: { url: webSocket } }) };
  return { ...serverAddress(url), fingerprint, ...ways };
}
