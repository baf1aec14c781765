/** The ways from one host to one configured base station besides UDP, and the networks that need them. */

import type { Environment } from '../../platform/environment.ts';
import { type BlockedNetworks, networkKey, type WebSocketChoice, webSocketUrls } from '../../protocol/station-dial/index.ts';
import type { ConfiguredStation, StationAddress } from './station-address.ts';

/** What an application configures for WebSockets to its base station. */
export interface WebSocketSettings extends WebSocketChoice {
  /** PEM: the only trusted roots where the certificate must be valid; default those of the platform. */
  readonly rootCerts?: string;
}

/** The ways to a base station and to its redirect targets. */
export class WaysToStation {
  readonly settings: WebSocketSettings;
  readonly #environment: Environment;
  readonly #blocked: BlockedNetworks;

  /** @param blocked networks that block UDP, shared by all stations of a process */
  constructor({ rootCerts, webSocket }: ConfiguredStation, environment: Environment, blocked: BlockedNetworks) {
    this.#environment = environment;
    this.#blocked = blocked;
    this.settings = { ...webSocket, ...(rootCerts !== undefined && { rootCerts }) };
  }

  /**
   * Returns the URLs of WebSockets to a station, in the order in which they are tried. A configured URL is for the
   * configured station alone.
   */
  urls({ host, port, urlPort }: StationAddress): readonly string[] {
    if (urlPort !== undefined) return webSocketUrls(host, urlPort, this.settings);
    const { verifyCertificate = false } = this.settings;
    return webSocketUrls(host, port, { verifyCertificate });
  }

  /**
   * Returns whether UDP was blocked in the present network, and a function that notes whether that network blocks it.
   */
  blockedHere(): { readonly isKnown: boolean; readonly note: (isBlocked: boolean) => void } {
    const { network, clock } = this.#environment;
    const addresses = (network.interfaces?.() ?? []).filter(({ kind }) => kind === 'default').flatMap((each) => each.addresses);
    const key = networkKey(addresses, network.gateways?.() ?? []);
    return { isKnown: this.#blocked.has(key, clock.now()), note: (isBlocked) => this.#blocked.note(key, isBlocked, clock.now()) };
  }
}
