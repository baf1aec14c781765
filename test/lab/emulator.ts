/** A link by `link-emulator.c`, for kernels without netem, and for runs that should lose the same packets again. */
import { fromRoot } from '../../bench/root.ts';
import { TestProcess } from '../support/process.ts';
import { type Counters, DEVICE, FAR_ADDRESS, type Link, type LinkCounters, type LinkOptions, NEAR_ADDRESS, PREFIX_LENGTH } from './link.ts';
import { Namespace } from './namespaces.ts';

export const EMULATOR_SOURCE = fromRoot('test/lab/link-emulator.c');
export const EMULATOR = fromRoot('build/lab/link-emulator');

/** In the form that `link-emulator` prints. */
export interface EmulatorCounters extends Counters {
  /** Dropped because the queue was full. */
  readonly dropped: number;
  /** Dropped by the receiving device. */
  readonly refused: number;
  readonly fragments: number;
  /**
   * ms: the longest time of a packet in the queue, the mean, and the 99th percentile; since the start or the previous
   * report.
   */
  readonly waited: number;
  readonly mean: number;
  readonly p99: number;
}

export interface EmulatedLinkCounters extends LinkCounters {
  readonly ab: EmulatorCounters;
  readonly ba: EmulatorCounters;
}

/** Where a link into a namespace of other links is, which may have several. */
export interface Place {
  readonly far: Namespace;
  /** Name of the device at both ends. */
  readonly device: string;
  /** Of the ends, in a network of their own of `PREFIX_LENGTH`. */
  readonly addresses: readonly [near: string, far: string];
}

export class EmulatedLink implements Link {
  readonly near = new Namespace();
  readonly far: Namespace;
  readonly #isOurs: boolean;
  readonly #emulator: TestProcess;
  readonly #output: AsyncIterator<string>;

  private constructor(options: LinkOptions, place: Place | undefined) {
    this.#isOurs = place === undefined;
    const { far, device, addresses } = place ?? { far: new Namespace(), device: DEVICE, addresses: [NEAR_ADDRESS, FAR_ADDRESS] };
    this.far = far;
    const ends = [`--a=${this.near.name},${addresses[0]}/${PREFIX_LENGTH}`, `--b=${far.name},${addresses[1]}/${PREFIX_LENGTH}`];
    const faults = Object.entries(options).map(([name, value]) => `--${name}=${[value].flat().join(':')}`);
    this.#emulator = new TestProcess(EMULATOR, [`--device=${device}`, ...ends, ...faults]);
    this.#output = this.#emulator.eachLine();
  }

  /** @param place default: between two new namespaces */
  static async open(options: LinkOptions, place?: Place): Promise<EmulatedLink> {
    const link = new EmulatedLink(options, place);
    const { value } = await link.#output.next();
    if (value === 'up') return link;
    await link.#remove();
    throw link.#emulator.failure('did not start');
  }

  /** Returns the counters. Restarts the measurement of times in the queue. */
  look(): Promise<EmulatedLinkCounters> {
    return this.#counters('SIGUSR1');
  }

  async close(): Promise<EmulatedLinkCounters> {
    const counters = await this.#counters('SIGTERM');
    await this.#remove();
    return counters;
  }

  async #counters(signal: NodeJS.Signals): Promise<EmulatedLinkCounters> {
    this.#emulator.kill(signal);
    const { value, done } = await this.#output.next();
    if (done) throw this.#emulator.failure('ended without its counters');
    return JSON.parse(value);
  }

  async #remove(): Promise<void> {
    await this.#emulator.ended;
    this.near.remove();
    if (this.#isOurs) this.far.remove();
  }
}
