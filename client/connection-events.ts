/** The events of a client's connection. */
import type { SvcError } from '../protocol/errors/index.ts';
import type { NotDirect } from '../protocol/rendezvous/index.ts';

/** `relay`: through the base station. `direct`: to an address of the device, on the local network or elsewhere. */
export type PathKind = 'relay' | 'direct';

/** Events of a connection, with their values. */
export interface ConnectionEvents {
  /** The connect waits for a device that is not attached to its base station: `waitForDevice` of the target. */
  waiting: object;
  /** It is connected. */
  open: object;
  /** Packets use another path from now on. `why`: what keeps a relayed connection from being direct. */
  path: { readonly kind: PathKind; readonly why?: NotDirect };
  /** No path works any longer; the connection continues when one is found, else it ends a minute later. */
  rest: { readonly reason: SvcError };
  /** A path works again. */
  resume: object;
  /**
   * Bytes of streams that the application has not read leave so little memory that further streams are slow; read or
   * abort them.
   */
  cramped: object;
  /** That is over. */
  relieved: object;
  /** It has ended; no event follows. `reason`: why, unless this end closed it. */
  close: { readonly reason?: SvcError };
}
