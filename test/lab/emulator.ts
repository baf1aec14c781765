/** A link by `link-emulator.c`, for kernels without netem, and for runs that should lose the same packets again. */
import { fromRoot } from '../../bench/root.ts';
import { TestProcess } from '../support/process.ts';
import { type Counters, DEVICE, FAR_ADDRESS, type Link, type LinkCounters, type LinkOptions, NEAR_ADDRESS, PREFIX_LENGTH } from './link.ts';
import { Namespace } from './namespaces.ts';

export const EMULATOR_SOURCE = fromRoot('test/lab/link-emulator.c');
export const EMULATOR = fromRoot('build/lab/link-emulator');

/** As `link-emulator` prints them. */
export interface EmulatorCounters extends Counters {
  /** For want of room in the queue. */
  readonly dropped: number;
  /** By the receiving device. */
  readonly refused: number;
  readonly fragments: number;
  /** ms: the longest time of a packet in the queue, the mean, and the 99th percentile; since the start or the last look. */
  readonly waited: number;
  readonly mean: number;
  readonly p99: number;
}

export interface EmulatedLinkCounters extends LinkCounters {
  readonly ab: EmulatorCounters;
  readonly ba: EmulatorCounters;
}

export class EmulatedLink implements Link {
  readonly near = new Namespace();
  readonly far = new Namespace();
  readonly #emulator: TestProcess;
  readonly #output: AsyncIterator<string>;

  private constructor(options: LinkOptions) {
    const ends = [`--a=${this.near.name},${NEAR_ADDRESS}/${PREFIX_LENGTH}`, `--b=${this.far.name},${FAR_ADDRESS}/${PREFIX_LENGTH}`];
    const faults = Object.entries(options).map(([name, value]) => `--${name}=${[value].flat().join(':')}`);
    this.#emulator = new TestProcess(EMULATOR, [`--device=${DEVICE}`, ...ends, ...faults]);
    this.#output = this.#emulator.eachLine();
  }

  static async open(options: LinkOptions): Promise<EmulatedLink> {
    const link = new EmulatedLink(options);
    const { value } = await link.#output.next();
    if (value === 'up') return link;
    await link.#remove();
    throw link.#emulator.failure('did not start');
  }

  /** The counters so far. Times in the queue are counted anew from here. */
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
    this.far.remove();
  }
}
