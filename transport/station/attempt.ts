/** What an attempt to reach a base station is given, and gives. */
import type { Router } from '../../protocol/coap/index.ts';
import type { PrivateKey } from '../../protocol/crypto-provider.ts';
import type { Session } from '../session/session.ts';
import type { WebSocketSocket } from '../websocket/index.ts';
import type { WaysToStation } from './ways.ts';

/** What an attempt gives. */
export interface Dialled {
  readonly session: Session;
  /** The one that it goes over; null: it goes by UDP. */
  readonly webSocket: WebSocketSocket | null;
}

export interface StationDialOptions {
  /** ms for all of it: resolver and handshakes. */
  timeout: number;
  /** Our identity towards the station; default: the host's. */
  identity?: PrivateKey;
  /** Serves what the station asks. */
  router?: Router<Session>;
  /** Default: UDP alone. */
  ways?: WaysToStation;
}
