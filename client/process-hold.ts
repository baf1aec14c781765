/**
 * Keeps the process of a client alive while a connection is open or connecting, and while the client stops. Its
 * sockets alone do not keep it alive, so a program that closes its connections ends, also without `stop`.
 */
import type { Environment } from '../platform/environment.ts';

/** Returns the same environment, whose sockets for datagrams and WebSockets do not keep a process alive. */
export function withoutSocketHold(environment: Environment): Environment {
  if (environment.keepProcess === undefined) return environment;
  const { network } = environment;
  const { openWebSocket } = network;
  return {
    ...environment,
    network: {
      ...network,
      bind: async (options) => unreferenced(await network.bind(options)),
      connect: async (options) => unreferenced(await network.connect(options)),
      ...(openWebSocket !== undefined && { openWebSocket: async (options) => unreferenced(await openWebSocket(options)) }),
    },
  };
}

function unreferenced<T extends { unref?(): void }>(socket: T): T {
  socket.unref?.();
  return socket;
}

/** Keeps the process alive while it has a holder. */
export class ProcessHold {
  readonly #keep: () => () => void;
  readonly #holders = new Set<unknown>();
  #release: () => void = () => {};

  constructor({ keepProcess = () => () => {} }: Pick<Environment, 'keepProcess'>) {
    this.#keep = keepProcess;
  }

  add(holder: unknown): void {
    if (this.#holders.size === 0) this.#release = this.#keep();
    this.#holders.add(holder);
  }

  /** Removes a holder, if it was added. */
  remove(holder: unknown): void {
    if (this.#holders.delete(holder) && this.#holders.size === 0) this.#release();
  }
}
