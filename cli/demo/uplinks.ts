/** For the demo: an environment whose packets leave from one address at a time, as those of a host with one uplink do. */
import type { Environment } from '../../transport/environment.ts';
import { withLog } from '../../transport/environment.ts';

export interface Uplinks {
  readonly environment: Environment;
  /** From now on packets leave from that address. Sockets that were bound before hear and send nothing any more. */
  use(address: string): void;
}

/** @param first numeric, an address of this host, as those of `use` are */
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
