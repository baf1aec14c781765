/**
 * A device's lasting channel to its base station: resolve, connect with the pin, attach (the product's callback), follow redirects, and begin
 * again with back-off whenever it ends. The client's short-lived one is `StationConnector`.
 */
import type { Router } from '../../protocol/coap/index.ts';
import type { SvcError } from '../../protocol/errors/index.ts';
import type { Host } from './host.ts';
import type { KeepAlive, Session } from './session.ts';

/** Where a base station is and who it must be. */
export interface StationAddress {
  /** name or numeric address */
  host: string;
  port: number;
  /** full hex fingerprint of its key */
  fingerprint: string;
}

/** What the product's attach decided. */
export type AttachVerdict =
  | { kind: 'attached'; keepAlive?: KeepAlive }
  | { kind: 'redirect'; station: StationAddress }
  /** an overloaded station, a passing error: with the back-off, or after `after` ms when the station said so */
  | { kind: 'retry'; error: SvcError; after?: number }
  /** refused for what we are (wrong ids, unknown fingerprint, replaced): 10 s, doubling up to 1 h; `after` sets the first one */
  | { kind: 'refused'; error: SvcError; after?: number };

export interface StationChannelConfig {
  host: Host;
  station: StationAddress;
  /** serves what the station asks on this channel */
  router?: Router<Session>;
  /** Attaches on a fresh session. A rejection counts as 'retry'. `redirects` = how many led here. */
  attach: (session: Session, context: { station: StationAddress; redirects: number }) => Promise<AttachVerdict>;
}

export interface StationChannelEvents {
  /** attach held */
  connected: Session;
  /** an attached channel ended; the next attempt follows by itself unless the channel was closed (then the error is null) */
  disconnected: SvcError | null;
  /** an attempt failed; the next one is after `delay` ms */
  failed: { error: SvcError; delay: number; refused: boolean };
}

export class StationChannel {
  constructor(config: StationChannelConfig) {
    void config;
  }
  /** The attached session, null while there is none. */
  get session(): Session | null {
    throw new Error('not there yet');
  }
  /** Begins (or begins again after stop). */
  start(): void {
    throw new Error('not there yet');
  }
  /** Detaches and stays detached until start. */
  stop(): Promise<void> {
    throw new Error('not there yet');
  }
  on<K extends keyof StationChannelEvents>(event: K, listener: (value: StationChannelEvents[K]) => void): () => void {
    void [event, listener];
    throw new Error('not there yet');
  }
}
