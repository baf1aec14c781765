/**
 * For the demo: an environment whose packets leave from one address at a time, like those of a host with one uplink.
 */
import { type Environment, withLog } from '../../platform/environment.ts';

export interface Uplinks {
  readonly environment: Environment;
  /** Makes packets leave from this address. Sockets bound before then receive and send nothing. */
  use(address: string): void;
}

/** @param first numeric, an address of this host, like those of `use` */
export function uplinksOf(inner: Environment, first: string): Uplinks {
  let current = first;
  const { network } = inner;
  const environment: Environment = {
    ...withLog(inner, inner.log),
    network: {
      ...network,
      sourceAddress: async () => current,
      bind: async (options) => {
        const own = current;
        const isUp = (): boolean => own === current;
        const socket = await network.bind({
          ...options,
          host: own,
          receive: (datagram, path) => isUp() && options.receive(datagram, path),
        });
        const send = socket.send.bind(socket);
        socket.send = (buffer, offset, length, path, released) => {
          if (isUp()) send(buffer, offset, length, path, released);
          else queueMicrotask(() => released(offset));
        };
        return socket;
      },
    },
  };
  return {
    environment,
    use: (address) => {
      current = address;
    },
  };
}
