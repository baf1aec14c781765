/** A base station, as an application names it and as it is dialled. */
import type { WebSocketChoice } from '../../protocol/station-dial/index.ts';

/** A base station as the application names it. */
export interface ConfiguredStation {
  /** Name or numeric address. */
  readonly host: string;
  /** UDP port of a pinned station; without a pin the TCP port of https, where the document names the UDP port. */
  readonly port: number;
  /** Full hex fingerprint of its key, the pin. Null: TLS proves the station. */
  readonly fingerprint: string | null;
  /** PEM: the only trusted roots of its certificate; default those of the platform. */
  readonly rootCerts?: string;
  /** The WebSocket to use where UDP is silent. */
  readonly webSocket?: WebSocketChoice;
}

/** Where a base station is, and its expected key. */
export interface StationAddress {
  /** Name or numeric address. */
  host: string;
  port: number;
  /** Full hex fingerprint of its key. */
  fingerprint: string;
  /** Port in the application's URL; undefined for the target of a redirect. */
  urlPort?: number;
}
