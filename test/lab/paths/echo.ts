/**
 * An echo service beside a device, behind a TCP tunnel of the device, and transfers to it from clients
 * (`echo-transfer.mjs`).
 */
import type { Child } from '../../../bench/processes/parent.ts';
import type { Namespace } from '../namespaces.ts';
import type { Products, View } from './products.ts';

const PORT = 7007;
const SERVICE = 'echo';
const ECHO = `require('node:net').createServer({ allowHalfOpen: true }, (socket) => {
  socket.on('error', () => {});
  socket.pipe(socket);
}).listen(${PORT}, '127.0.0.1', () => console.log('up'))`;

/** Options of a device whose host has the service. */
export const ECHO_TUNNEL: readonly string[] = ['--tunnel', `${SERVICE}=tcp:127.0.0.1:${PORT}`];

/** Bytes of a write, ms between two: 10 Mbit/s each way. */
export const BULK = { bytes: 12_500, pace: 10 };
/** The same: 160 kbit/s. */
export const TRICKLE = { bytes: 1_000, pace: 50 };

/** Progress of a transfer since some time, ms. */
export interface Stall {
  readonly longest: number;
  /** Until the first byte; null: none came. */
  readonly first: number | null;
  readonly received: number;
  readonly failure: string | null;
}

/** Events of a connection. */
export interface History {
  readonly events: readonly string[];
  readonly closed: string | null;
  /** Undefined once it has ended. */
  readonly rests?: number;
  readonly restTime?: number;
}

/** Starts the service on a host. */
export async function startEcho(products: Products, host: Namespace): Promise<void> {
  await products.node(host, '-e', ECHO).line();
}

/** A connection of a client's process, with a transfer over it. */
export class Echo {
  readonly name: string;
  readonly client: Child;

  constructor(client: Child, name: string) {
    this.client = client;
    this.name = name;
  }

  /** Begins the transfer. */
  begin(load: typeof BULK): Promise<void> {
    return this.#call('echo', { service: SERVICE, ...load });
  }

  /** @param since ms since the epoch */
  stall(since: number): Promise<Stall> {
    return this.#call('stall', { since });
  }

  /**
   * Waits for a byte. @returns ms from `since` (ms since the epoch) to its arrival; null: none arrived within the limit
   */
  resumed(since: number, limit: number): Promise<number | null> {
    return this.#call('resumed', { since, limit });
  }

  /**
   * Waits for a byte, and fails with the connection's state when none arrives within the limit. @returns as `resumed`
   */
  async expectResumed(since: number, limit: number, text: string): Promise<number> {
    const first = await this.resumed(since, limit);
    if (first !== null) return first;
    const known = await Promise.all([this.history(), this.stall(since), this.#call('paths', {}).catch(String)]);
    throw new Error(`${text}: no byte came back within ${limit} ms: ${JSON.stringify(known)}`);
  }

  history(): Promise<History> {
    return this.#call('history', {});
  }

  /** Whether the connection uses a direct path now. */
  async isDirect(): Promise<boolean> {
    return (await this.#call<View>('view', {})).type === 'DIRECT';
  }

  /** Ends the transfer, every byte of which must arrive, and the connection. @returns the number of bytes */
  async finish(): Promise<number> {
    const bytes = await this.#call<number>('finish', {});
    await this.#call('close', {});
    return bytes;
  }

  #call<Result>(call: string, argument: Record<string, unknown>): Promise<Result> {
    return this.client.call(call, { name: this.name, ...argument });
  }
}
