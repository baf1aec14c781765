/**
 * How long a client keeps its process alive: while a connection is open or connecting, and while the client stops. Its sockets alone do not, so a program whose
 * connections are closed ends, also without `stop`.
 */
import type { Environment } from '../transport/environment.ts';

/** The same environment, whose sockets for datagrams and WebSockets keep no process alive. */
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

/** Keeps the process alive for as long as anything wants it. */
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

  /** Harmless for one that was not added. */
  remove(holder: unknown): void {
    if (this.#holders.delete(holder) && this.#holders.size === 0) this.#release();
  }
}
