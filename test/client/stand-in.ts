/**
 * The connect of a client over stand-ins of its host and of its channel to the base station: what it asks of both, and
 * how it ends. The local network is a simulated one in which no device is announced.
 */
import { connectChannels } from '../../client/connect/race.ts';
import { type ConnectionOptions, effectiveOptions, mergeOptions } from '../../client/options.ts';
import type { CoapResponse } from '../../protocol/coap/index.ts';
import { type ConnectRequest, decodeConnectRequest } from '../../protocol/control/index.ts';
import { type ChannelErrors, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import { MdnsBrowser } from '../../runtime/discovery/index.ts';
import type { ConnectTarget, Host } from '../../runtime/host/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import type { ConfiguredStation, StationConnector } from '../../runtime/station/index.ts';
import { ids, SCT, SERVER_URL } from '../support/fixture/identifiers.ts';
import { nativeSimulation } from '../support/simulation.ts';

/** The request to the base station. */
type StationRequest = { readonly payload: Uint8Array; readonly timeout: number };

/** What a connect has asked, and its end. */
export interface Asked {
  /** The base station that it reaches. */
  station?: ConfiguredStation;
  /** ms for the handshake with the base station, and for its answer. */
  timeouts?: readonly number[];
  request?: ConnectRequest;
  /** The handshake with the device. */
  target?: ConnectTarget;
  /** The state of each channel: local, remote, direct. */
  channels: string[];
  error: SvcError;
  /** The error of the channel through the base station. */
  remote?: SvcError | undefined;
  /** Virtual ms until the connect ended. */
  took: number;
}

/** The ids of a device and a pinned base station: options of a connect, without a proof for the base station. */
export const NAMED: ConnectionOptions = {
  ProductId: ids.productId,
  DeviceId: ids.deviceId,
  ServerUrl: SERVER_URL,
  ServerFingerprint: 'cd'.repeat(32),
  Local: false,
};
/** The same, with a proof. */
export const ADMITTED: ConnectionOptions = { ...NAMED, ServerConnectToken: SCT };

const refused = (): Promise<CoapResponse> => Promise.reject(new RemoteError('FORBIDDEN', 'refused by the stand-in'));

/** @param answer of the base station @throws LocalError for invalid options */
export async function asked(options: ConnectionOptions, answer = refused): Promise<Asked> {
  const sim = nativeSimulation();
  const environment = sim.host('phone', { addresses: ['198.51.100.2/24'] });
  const seen: Pick<Asked, 'station' | 'timeouts' | 'request' | 'target'> = {};
  const ask = ({ payload, timeout }: StationRequest): Promise<CoapResponse> => {
    seen.request = decodeConnectRequest(payload);
    seen.timeouts = [...(seen.timeouts ?? []), timeout];
    return answer();
  };
  const channel = {
    isOpen: true,
    request: ask,
    observe: (request: StationRequest, onResponse: (response: CoapResponse) => void, onEnd: (error: unknown) => void) => {
      ask(request).then(onResponse, onEnd);
      return { cancel: () => {} };
    },
  } as unknown as Session;
  const connector: Pick<StationConnector, 'use'> = {
    use: async (run, { timeout = 0 } = {}) => {
      seen.timeouts = [timeout];
      return (await run(channel, { redirects: 0 } as never)) as never;
    },
  };
  const host = {
    environment,
    dials: {
      prepare: (target: ConnectTarget) => {
        seen.target = target;
        return { initiate: new Uint8Array(1), cancel: () => {} };
      },
    },
  } as unknown as Host;
  let channels: ChannelErrors = { local: 'NONE', remote: 'NONE', direct: 'NONE' };
  let remote: SvcError | undefined;
  const context: Parameters<typeof connectChannels>[0] = {
    environment,
    identity: environment.crypto.generateKey(),
    candidates: null,
    browser: new MdnsBrowser(environment),
    host: async () => host,
    connector: async (station) => {
      seen.station = station;
      return connector as StationConnector;
    },
    onChannels: (results, failures) => {
      channels = results;
      remote = failures.remote;
    },
    onWaiting: () => {},
  };
  const connecting = connectChannels(context, effectiveOptions(mergeOptions({}, options)), new AbortController().signal);
  const error = (await sim.settle(connecting.catch((reason: unknown) => reason))) as SvcError;
  return { ...seen, channels: [channels.local, channels.remote, channels.direct], error, remote, took: sim.now };
}
