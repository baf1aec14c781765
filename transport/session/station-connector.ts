/**
 * A client's channel to a base station: made when something needs it, kept for further connects and while relayed sessions run over it,
 * closed when idle. One attempt per need: no back-off, its caller gets the error.
 */
import type { PrivateKey } from '../../protocol/host.ts';
import type { Host } from './host.ts';
import type { Session } from './session.ts';
import type { StationAddress } from './station-channel.ts';

export interface StationConnectorConfig {
  host: Host;
  station: StationAddress;
  /** throw-away key towards the station (protocol.md §1); default: a fresh one per handshake */
  identity?: PrivateKey;
  /** ms without use or relayed session until the channel is closed, default 30,000 */
  idleTimeout?: number;
}

/** What `use` may return instead of a result: go to that station and run again. */
export class Redirect {
  readonly station: StationAddress;
  constructor(station: StationAddress) {
    this.station = station;
  }
}

export class StationConnector {
  constructor(config: StationConnectorConfig) {
    void config;
  }
  /**
   * Runs `run` on a session with the base station, connecting first when there is none; follows a returned Redirect, at most 5 in a row.
   * @throws DNS, TIMEOUT, STOPPED, key mismatch, TOO_MANY_REDIRECTS as RemoteError BAD_RESPONSE; whatever `run` throws
   */
  use<T>(
    run: (session: Session, context: { station: StationAddress; redirects: number }) => Promise<T | Redirect>,
    options?: { signal?: AbortSignal; timeout?: number },
  ): Promise<T> {
    void [run, options];
    throw new Error('not there yet');
  }
  /** Closes; later use fails with STOPPED. */
  close(): Promise<void> {
    throw new Error('not there yet');
  }
}
