/**
 * The products in the lab's internet: `svc basestation` in the core, `svc device` in homes, and clients (`client.mjs`).
 * Real processes on real sockets.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { Child, type Program } from '../../../bench/processes/parent.ts';
import { type ConnectionOptions, SvcClient } from '../../../client/node.ts';
import { svcInProcess } from '../../e2e/in-process.ts';
import { MAIN } from '../../support/fixture/processes.ts';
import { endProcesses, TestProcess } from '../../support/process.ts';
import type { Namespace } from '../namespaces.ts';
import { Internet, STATION_ADDRESS } from './internet.ts';
import { labWithNat, script } from './lab.ts';

const PRODUCT = 'pr-lab';
const PORT = 4433;

/** The path that a connection found, or the reason for none. */
export interface View {
  readonly type: 'DIRECT' | 'RELAY';
  readonly over: 'lan' | 'ipv6' | 'ipv4' | 'relay';
  readonly why: string | null;
}

export interface Key {
  readonly pem: string;
  readonly fingerprint: string;
}

/** A device of the lab. */
export interface LabDevice {
  readonly name: string;
  readonly process: TestProcess;
  /** Options of a client that knows it. */
  readonly options: ConnectionOptions;
}

/** An internet with the products in it. */
export interface Lab {
  readonly internet: Internet;
  readonly products: Products;
}

/**
 * The suite with an internet and a base station, which end with it. `work` receives a function that returns both once
 * the tests run, not before.
 * @param keys number of clients that the devices know
 * @param options of the base station, or a function that creates them in the folder of the products
 */
export function labWithProducts(
  name: string,
  { keys, options = [] }: { keys: number; options?: readonly string[] | ((folder: string) => Promise<readonly string[]>) },
  work: (lab: Lab) => void,
): void {
  labWithNat(name, () => {
    const lab: { internet?: Internet; products?: Products } = {};

    beforeAll(async () => {
      lab.internet = new Internet();
      lab.products = new Products(keys);
      await lab.products.startStation(lab.internet.core, ...(typeof options === 'function' ? await options(lab.products.folder) : options));
    });

    afterAll(async () => {
      await lab.products?.close();
      await endProcesses();
      lab.internet?.remove();
    });

    work(lab as Lab);
  });
}

export class Products {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'svc-lab-paths-'));
  /** Keys of clients that every device knows. */
  readonly keys: readonly Key[];
  /** Variables of a host's environment beside those of this process. */
  readonly variables: Map<Namespace, NodeJS.ProcessEnv> = new Map();
  readonly #address: string;
  #station: TestProcess | null = null;
  #stationFingerprint = '';
  readonly #children: Child[] = [];

  /**
   * @param keys number of clients that the devices know
   * @param address of the base station
   */
  constructor(keys: number, address: string = STATION_ADDRESS) {
    this.#address = address;
    this.keys = Array.from({ length: keys }, newKey);
    writeFileSync(join(this.folder, 'allowed'), this.keys.map(({ fingerprint }) => `${fingerprint}\n`).join(''));
  }

  /** Starts the base station, or starts it again. */
  async startStation(core: Namespace, ...options: string[]): Promise<void> {
    const data = ['--data', join(this.folder, 'station'), '--port', String(PORT)];
    this.#station = this.#start(core, 'basestation', ...data, '--connects-per-device', '1000', '--json', ...options);
    const { fingerprint } = JSON.parse(await this.#station.line((line) => line.includes('"listening"')));
    if (this.#stationFingerprint === '') await this.#admin('product', 'add', PRODUCT);
    this.#stationFingerprint = fingerprint;
  }

  /** Output of the base station. */
  get stationLog(): string {
    return this.#station?.stderr ?? '';
  }

  /** Ends the base station, and waits until it has ended. */
  async stopStation(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.#station?.end(signal);
  }

  /** A device, attached. */
  async device(namespace: Namespace, name: string, ...options: string[]): Promise<LabDevice> {
    const data = join(this.folder, name);
    const station = ['--server', `https://${this.#address}:${PORT}`, '--server-fingerprint', this.#stationFingerprint];
    const ids = ['--data', data, '--product', PRODUCT, '--device-id', name, ...station, '--json'];
    const { stdout } = await svcInProcess(['device', ...ids, '--init']);
    const { fingerprint, pairingString } = JSON.parse(stdout);
    await this.#admin('device', 'add', PRODUCT, name, '--fingerprint', fingerprint);
    const process = this.#start(namespace, 'device', ...ids, '--allow', join(this.folder, 'allowed'), ...options);
    await process.line((line) => line.includes('"attached"'));
    const sct = /(?:^|,)sct=([^,]+)/.exec(pairingString)?.[1] ?? '';
    const known = { ProductId: PRODUCT, DeviceId: name, DeviceFingerprint: fingerprint, ServerConnectToken: sct };
    const server = { ServerUrl: `https://${this.#address}:${PORT}`, ServerFingerprint: this.#stationFingerprint };
    return { name, process, options: { ...known, ...server, Local: false } };
  }

  /** A client's process. */
  client(namespace: Namespace): Child {
    return this.child(namespace, script('client'));
  }

  /** A process with callable functions. */
  child(namespace: Namespace, program: Program): Child {
    const child = new Child(namespace.inside(program));
    this.#children.push(child);
    return child;
  }

  /** Runs `svc` inside to its end. */
  svc(namespace: Namespace, ...args: string[]): TestProcess {
    return this.#start(namespace, ...args);
  }

  /** Runs Node inside. */
  node(namespace: Namespace, ...args: string[]): TestProcess {
    const command = ['netns', 'exec', namespace.name, process.execPath, ...args];
    return new TestProcess('ip', command, { variables: this.variables.get(namespace) });
  }

  /** Ends the processes that it has started, except those that `endProcesses` ends. */
  async close(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.stop()));
    rmSync(this.folder, { recursive: true, force: true });
  }

  #start(namespace: Namespace, ...args: string[]): TestProcess {
    return this.node(namespace, MAIN, ...args);
  }

  async #admin(...args: string[]): Promise<void> {
    const { code, stderr } = await svcInProcess(['admin', ...args, '--data', join(this.folder, 'station')]);
    if (code !== 0) throw new Error(stderr);
  }
}

function newKey(): Key {
  const client = SvcClient.create();
  const pem = client.createPrivateKey();
  const connection = client.createConnection();
  connection.updateOptions({ PrivateKey: pem });
  return { pem, fingerprint: connection.getClientFingerprint() };
}
