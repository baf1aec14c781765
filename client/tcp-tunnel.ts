/**
 * A TCP tunnel: a port on 127.0.0.1 behind which lies a service of the device, in the specification's form.
 *
 * Steps of `open`: ask the device whether this client may use the service (`GET /tcp-tunnels/connect/:id`, which also names the service's
 * stream port), listen, and for every TCP connection open a stream to that port. The device authorizes each of these again.
 */
import { formatStatus, Status } from '../protocol/coap/index.ts';
import { LocalError, RemoteError } from '../protocol/errors/index.ts';
import { decodeTunnelService } from '../protocol/records/index.ts';
import type { Session } from '../transport/session/index.ts';
import type { ListenTunnel, TunnelListener } from './host.ts';
import { whileConnected } from './while-connected.ts';

/** A local TCP port that leads to a service of the device. Made by `Connection.createTcpTunnel`. */
export class TcpTunnel {
  readonly #session: () => Session;
  readonly #listen: ListenTunnel | undefined;
  #state: 'new' | 'opening' | 'open' | 'closed' = 'new';
  #listener: TunnelListener | null = null;

  /** For `Connection.createTcpTunnel`. */
  constructor(session: () => Session, listen: ListenTunnel | undefined) {
    this.#session = session;
    this.#listen = listen;
  }

  /**
   * @param serviceId id of the service on the device
   * @param localPort port to listen on, 0 chooses a free one
   * @throws NOT_FOUND (no such service); FORBIDDEN; PORT_IN_USE; PRIVILEGED_PORT; NOT_CONNECTED; STOPPED; INVALID_STATE when opened before;
   * NOT_IMPLEMENTED in a browser
   */
  async open(serviceId: string, localPort = 0): Promise<void> {
    if (this.#listen === undefined) throw new LocalError('NOT_IMPLEMENTED', 'TCP tunnels need a host that can listen on TCP ports');
    if (!Number.isInteger(localPort) || localPort < 0 || localPort > 0xffff)
      throw new LocalError('INVALID_ARGUMENT', 'a local port is a number from 0 to 65535');
    if (this.#state !== 'new') throw new LocalError('INVALID_STATE', 'the tunnel was opened before');
    this.#state = 'opening';
    try {
      const session = this.#session();
      const streamPort = await askDevice(session, serviceId);
      const listener = await this.#listen(localPort, () => session.startStream(streamPort));
      this.#opened(session, listener);
    } catch (error) {
      if (this.#state === 'opening') this.#state = 'new';
      throw error;
    }
  }

  /** The port it listens on. @throws LocalError INVALID_STATE when it is not open */
  getLocalPort(): number {
    if (this.#listener === null) throw new LocalError('INVALID_STATE', 'the tunnel is not open');
    return this.#listener.port;
  }

  /** Stops listening and ends the TCP connections. @throws LocalError INVALID_STATE when it is not open */
  async close(): Promise<void> {
    if (this.#listener === null) throw new LocalError('INVALID_STATE', 'the tunnel is not open');
    await this.#end();
  }

  #opened(session: Session, listener: TunnelListener): void {
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

/** The stream port of a service this client may use. */
async function askDevice(session: Session, serviceId: string): Promise<number> {
  if (serviceId === '' || serviceId.includes('/')) throw new LocalError('INVALID_ARGUMENT', 'a service id is a text without "/"');
  const request = { method: 'GET', path: `/tcp-tunnels/connect/${encodeURIComponent(serviceId)}` } as const;
  const response = await whileConnected(session, () => session.request(request));
  if (response.status === Status.NOT_FOUND)
    throw new RemoteError('NOT_FOUND', `the device has no tunnel service ${JSON.stringify(serviceId)}`);
  if (response.status === Status.FORBIDDEN)
    throw new RemoteError('FORBIDDEN', `the device does not allow this client to use the tunnel service ${JSON.stringify(serviceId)}`);
  if (response.status !== Status.CONTENT)
    throw new RemoteError('BAD_RESPONSE', `the device answered ${formatStatus(response.status)} when asked for a tunnel`);
  return decodeTunnelService(response.payload).streamPort;
}
