/**
 * The common part of TCP and UDP tunnels: a port on 127.0.0.1 that leads to a service of the device.
 *
 * Steps of opening: ask the device whether this client may use the service (`ask-service.ts`), then listen.
 */
import { check, whole } from '../../protocol/arguments.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import type { TunnelListener } from '../platform.ts';
import { askService, SERVICE_ID, type TunnelKind } from './ask-service.ts';

/** Listens on a local port for a service's stream port. @throws LocalError PORT_IN_USE, PRIVILEGED_PORT */
export type ListenLocally<L extends TunnelListener> = (session: Session, streamPort: number, localPort: number) => Promise<L>;

/** A local port that leads to a service of the device, opened once. */
export class LocalTunnel<L extends TunnelListener> {
  readonly #session: () => Session;
  readonly #kind: TunnelKind;
  #state: 'new' | 'opening' | 'open' | 'closed' = 'new';
  /** Ends `open`. */
  #opening: AbortController | null = null;
  #listener: L | null = null;

  constructor(session: () => Session, kind: TunnelKind) {
    this.#session = session;
    this.#kind = kind;
  }

  /** @param listen undefined where the platform cannot listen. @throws as TcpTunnel.open */
  async open(serviceId: string, localPort: number, listen: ListenLocally<L> | undefined): Promise<void> {
    const kind = this.#kind.toUpperCase();
    if (listen === undefined) throw new LocalError('NOT_IMPLEMENTED', `${kind} tunnels need a platform that can listen on ${kind} ports`);
    check('the service id', serviceId, SERVICE_ID);
    check('the local port', localPort, whole(0, 0xffff));
    if (this.#state !== 'new') throw new LocalError('INVALID_STATE', 'the tunnel has already been opened');
    this.#state = 'opening';
    this.#opening = new AbortController();
    const { signal } = this.#opening;
    try {
      const session = this.#session();
      const { record } = await askService(session, this.#kind, serviceId, { signal });
      const listener = await listen(session, record.streamPort, localPort);
      if (signal.aborted) await listener.close();
      if (signal.aborted) throw new LocalError('STOPPED', 'the tunnel was closed while it opened');
      this.#opened(session, listener);
    } catch (error) {
      if (this.#state === 'opening') this.#state = 'new';
      throw error;
    } finally {
      this.#opening = null;
    }
  }

  /** @throws LocalError INVALID_STATE when it is not open */
  get listener(): L {
    if (this.#listener === null) throw new LocalError('INVALID_STATE', 'the tunnel is not open');
    return this.#listener;
  }

  /** Also ends an `open` under way. @throws LocalError INVALID_STATE when it is neither open nor being opened */
  async close(): Promise<void> {
    if (this.#listener === null && this.#opening === null) throw new LocalError('INVALID_STATE', 'the tunnel is not open');
    this.#opening?.abort();
    await this.#end();
  }

  #opened(session: Session, listener: L): void {
    this.#listener = listener;
    this.#state = 'open';
    session.closed.then(() => this.#end());
  }

  async #end(): Promise<void> {
    const listener = this.#listener;
    this.#listener = null;
    this.#state = 'closed';
    await listener?.close();
  }
}
