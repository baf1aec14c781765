/** A port that another program has, with its number: who was told the port by an option can name that. */
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
