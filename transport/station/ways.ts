/** The ways from one host to one configured base station besides UDP, and in which networks they are needed. */
import { type BlockedNetworks, networkKey, type WebSocketChoice, webSocketUrls } from '../../protocol/station-dial/index.ts';
import type { Environment } from '../environment.ts';
import type { ConfiguredStation, StationAddress } from './station-address.ts';

/** What an application says of WebSockets to its base station. */
export interface WebSocketSettings extends WebSocketChoice {
  /** PEM: the roots that a certificate which must be valid leads to; default those of the platform. */
  readonly rootCerts?: string;
}

/** @param blocked where UDP does not get through */
export function waysTo({ rootCerts, webSocket }: ConfiguredStation, environment: Environment, blocked: BlockedNetworks): WaysToStation {
  return new WaysToStation(environment, blocked, { ...webSocket, ...(rootCerts !== undefined && { rootCerts }) });
}

/** Of a base station and those that it redirects to. */
export class WaysToStation {
  readonly settings: WebSocketSettings;
  readonly #environment: Environment;
  readonly #blocked: BlockedNetworks;

  /** @param blocked shared by all stations of a process */
  constructor(environment: Environment, blocked: BlockedNetworks, settings: WebSocketSettings) {
    this.#environment = environment;
    this.#blocked = blocked;
    this.settings = settings;
  }

  /** The URLs of WebSockets to a station, in the order in which they are tried. A URL that was given is that of the configured station alone. */
  urls({ host, port, urlPort }: StationAddress): readonly string[] {
    if (urlPort !== undefined) return webSocketUrls(host, urlPort, this.settings);
    const { verifyCertificate = false } = this.settings;
    return webSocketUrls(host, port, { verifyCertificate });
  }

  /** Whether UDP was blocked in the network of now, and what notes that it is or is not, of the same network. */
  blockedHere(): { readonly isKnown: boolean; readonly note: (isBlocked: boolean) => void } {
    const { network, clock } = this.#environment;
    const addresses = (network.interfaces?.() ?? []).filter(({ kind }) => kind === 'default').flatMap((each) => each.addresses);
    const key = networkKey(addresses, network.gateways?.() ?? []);
    return { isKnown: this.#blocked.has(key, clock.now()), note: (isBlocked) => this.#blocked.note(key, isBlocked, clock.now()) };
  }
}
