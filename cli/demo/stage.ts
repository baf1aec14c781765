/** The demo's stage: the processes, their addresses and keys, and a caller for the client process. */
import type { ConnectionOptions } from '../../client/node.ts';
import type { DemoClientCalls } from './client.ts';
import type { LineProcess, Processes } from './processes.ts';

/** Shared by all steps. `station` changes when the base station is restarted. */
export interface Stage {
  readonly folder: string;
  readonly processes: Processes;
  readonly stationArguments: readonly string[];
  station: LineProcess;
  readonly stationPort: number;
  readonly device: LineProcess;
  readonly client: DemoClient;
  /** Opens a fresh connection of the client to the device. */
  connect(): Promise<{ type: string; verified: string }>;
  /** The options of such a connection, and the file of its key. */
  readonly target: { readonly options: ConnectionOptions; readonly keyFile: string };
}

/** Calls into the client process. */
export class DemoClient {
  readonly #running: LineProcess;
  readonly #pending = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  #next = 1;

  constructor(running: LineProcess) {
    this.#running = running;
    running.child.on('message', (message: { id: number; result?: never; error?: string }) => {
      const call = this.#pending.get(message.id);
      this.#pending.delete(message.id);
      if (message.error === undefined) call?.resolve(message.result as never);
      else call?.reject(new Error(message.error));
    });
    void running.exited.then((code) => {
      for (const { reject } of this.#pending.values()) reject(new Error(`the client process ended (${code})`));
    });
  }

  /** Runs `name` in the client process. Rejects with the client's error as `CODE: message`. */
  call<Name extends keyof DemoClientCalls>(name: Name, ...given: Parameters<DemoClientCalls[Name]>): ReturnType<DemoClientCalls[Name]> {
    const id = this.#next++;
    const answer = new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    this.#running.child.send({ id, call: name, arguments: given });
    return answer as ReturnType<DemoClientCalls[Name]>;
  }
}
