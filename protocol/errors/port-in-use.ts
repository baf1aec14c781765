/**
 * The error for a local port that another program uses. It carries the port number, so that a caller can name the
 * option that chose the port.
 */
import { LocalError } from '../../bindings/error.ts';

/** PORT_IN_USE. */
export class PortInUseError extends LocalError {
  override name = 'PortInUseError';
  readonly transport: 'UDP' | 'TCP';
  readonly port: number;

  constructor(transport: 'UDP' | 'TCP', port: number, options?: ErrorOptions) {
    super('PORT_IN_USE', `${transport} port ${port} is in use: stop what uses it, or choose another one (0 takes a free one)`, options);
    this.transport = transport;
    this.port = port;
  }
}
