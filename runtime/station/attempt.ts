/** Options and result of an attempt to reach a base station. */
import type { Router } from '../../protocol/coap/index.ts';
import type { PrivateKey } from '../../protocol/crypto-provider.ts';
import type { Session } from '../session/session.ts';
import type { WebSocketSocket } from '../websocket/index.ts';
import type { WaysToStation } from './ways.ts';

/** The result of an attempt. */
export interface DialResult {
  readonly session: Session;
  /** The WebSocket that the session uses; null: it uses UDP. */
  readonly webSocket: WebSocketSocket | null;
}

export interface StationDialOptions {
  /** ms for everything: resolver and handshakes. */
  timeout: number;
  /** Our identity towards the station; default: the host's. */
  identity?: PrivateKey;
  /** Serves requests of the station. */
  router?: Router<Session>;
  /** Default: only UDP. */
  ways?: WaysToStation;
}
