/**
 * What TCP and UDP tunnels have in common: a port on 127.0.0.1 behind which lies a service of the device.
 *
 * Steps of opening: ask the device whether this client may use the service (`GET /tcp-tunnels/connect/:id` or `/udp-tunnels/connect/:id`, which
 * also names the service's stream port), then listen.
 */
import { diagnosticText, formatStatus, Status } from '../../protocol/coap/index.ts';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { decodeTunnelService } from '../../protocol/records/index.ts';
import type { Session } from '../../transport/session/index.ts';
import type { TunnelListener } from '../host.ts';
import { whileConnected } from '../while-connected.ts';

/** Bytes of what a device says that are shown. */
const MAX_DIAGNOSTIC = 256;

/** Listens on a local port for a service's stream port. @throws LocalError PORT_IN_USE, PRIVILEGED_PORT */
export type ListenLocally<L extends TunnelListener> = (session: Session, streamPort: number, localPort: number) => Promise<L>;

/** A local port that leads to a service of the device, opened once. */
export class LocalTunnel<L extends TunnelListener> {
  readonly #session: () => Session;
  readonly #kind: 'tcp' | 'udp';
  #state: 'new' | 'opening' | 'open' | 'closed' = 'new';
  #listener: L | null = null;

  constructor(session: () => Session, kind: 'tcp' | 'udp') {
    this.#session = session;
    this.#kind = kind;
  }

  /** @param listen undefined where the host cannot listen. @throws as TcpTunnel.open */
  async open(serviceId: string, localPort: number, listen: ListenLocally<L> | undefined): Promise<void> {
    const kind = this.#kind.toUpperCase();
    if (listen === undefined) throw new LocalError('NOT_IMPLEMENTED', `${kind} tunnels need a host that can listen on ${kind} ports`);
    if (!Number.isInteger(localPort) || localPort < 0 || localPort > 0xffff)
      throw new LocalError('INVALID_ARGUMENT', 'a local port is a number from 0 to 65535');
    if (this.#state !== 'new') throw new LocalError('INVALID_STATE', 'the tunnel was opened before');
    this.#state = 'opening';
    try {
      const session = this.#session();
      const streamPort = await this.#askDevice(session, serviceId);
      this.#opened(session, await listen(session, streamPort, localPort));
    } catch (error) {
      if (this.#state === 'opening') this.#state = 'new';
      throw error;
    }
  }

  /** @throws LocalError INVALID_STATE when it is not open */
  get listener(): L {
    if (this.#listener === null) throw new LocalError('INVALID_STATE', 'the tunnel is not open');
    return this.#listener;
  }

  /** @throws LocalError INVALID_STATE when it is not open */
  async close(): Promise<void> {
    if (this.#listener === null) throw new LocalError('INVALID_STATE', 'the tunnel is not open');
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

  /** The stream port of a service this client may use. */
  async #askDevice(session: Session, serviceId: string): Promise<number> {
    if (serviceId === '' || serviceId.includes('/')) throw new LocalError('INVALID_ARGUMENT', 'a service id is a text without "/"');
    const request = { method: 'GET', path: `/${this.#kind}-tunnels/connect/${encodeURIComponent(serviceId)}` } as const;
    const response = await whileConnected(session, () => session.request(request));
    if (response.status === Status.NOT_FOUND)
      throw new RemoteError('NOT_FOUND', `the device has no tunnel service ${JSON.stringify(serviceId)}`);
    if (response.status === Status.FORBIDDEN)
      throw new RemoteError('FORBIDDEN', `the device does not allow this client to use the tunnel service ${JSON.stringify(serviceId)}`);
    if (response.status !== Status.CONTENT) {
      const said = diagnosticText(response, MAX_DIAGNOSTIC);
      const answer = `${formatStatus(response.status)}${said === '' ? '' : ` ("${said}")`}`;
      throw new RemoteError('BAD_RESPONSE', `the device answered ${answer} when asked for a tunnel`);
    }
    return decodeTunnelService(response.payload).streamPort;
  }
}
