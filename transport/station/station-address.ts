/** Which base station: as an application names it, and as it is dialled. */
import type { WebSocketChoice } from '../../protocol/station-dial/index.ts';

/** A base station as the application names it. */
export interface ConfiguredStation {
  /** Name or numeric address. */
  readonly host: string;
  /** UDP port of a pinned station; TCP port of https without a pin, where the document names that of UDP. */
  readonly port: number;
  /** Full hex fingerprint of its key, the pin. Null: it is proved by TLS. */
  readonly fingerprint: string | null;
  /** PEM: the roots that its certificate must lead to; default those of the platform. */
  readonly rootCerts?: string;
  /** The WebSocket to it where UDP is silent. */
  readonly webSocket?: WebSocketChoice;
}

/** Where a base station is and who it must be. */
export interface StationAddress {
  /** Name or numeric address. */
  host: string;
  port: number;
  /** Full hex fingerprint of its key. */
  fingerprint: string;
  /** Port of the URL by which the application names it; undefined for the target of a redirect. */
  urlPort?: number;
}
