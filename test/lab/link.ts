/** An emulated IP link between two new network namespaces, `near` (10.77.0.1) and `far` (10.77.0.2). */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fromRoot } from '../../bench/root.ts';
import { Namespace } from './namespaces.ts';

export const EMULATOR_SOURCE = fromRoot('test/lab/link-emulator.c');
export const EMULATOR = fromRoot('build/lab/link-emulator');

export const NEAR_ADDRESS = '10.77.0.1';
export const FAR_ADDRESS = '10.77.0.2';

const DEVICE = 'lab';

/** A value for both directions, or for near → far and far → near. */
type Both = number | readonly [number, number];

/** As `link-emulator` takes them; units there. */
export interface LinkOptions {
  readonly rate?: Both;
  readonly queue?: Both;
  readonly delay?: Both;
  readonly jitter?: Both;
  readonly loss?: Both;
  readonly mtu?: number;
  readonly seed?: number;
}

export interface Counters {
  readonly packets: number;
  readonly bytes: number;
  readonly lost: number;
  readonly dropped: number;
  readonly refused: number;
  readonly fragments: number;
  /** ms: the longest time of a packet in the queue. */
  readonly waited: number;
}

export interface LinkCounters {
  /** Near → far. */
  readonly ab: Counters;
  readonly ba: Counters;
}

export class Link {
  readonly near: Namespace;
  readonly far: Namespace;
  readonly #emulator: ChildProcess;
  readonly #output: AsyncIterator<string>;

  private constructor(near: Namespace, far: Namespace, emulator: ChildProcess, output: AsyncIterator<string>) {
    this.near = near;
    this.far = far;
    this.#emulator = emulator;
    this.#output = output;
  }

  static async open(options: LinkOptions): Promise<Link> {
    const [near, far] = [new Namespace(), new Namespace()];
    // The kernel's own IPv6 packets would take part in what the seed decides.
    for (const end of [near, far]) end.run('sysctl', '-qw', 'net.ipv6.conf.default.disable_ipv6=1');
    const ends = [`--a=${near.name},${NEAR_ADDRESS}/24`, `--b=${far.name},${FAR_ADDRESS}/24`];
    const faults = Object.entries(options).map(([name, value]) => `--${name}=${[value].flat().join(':')}`);
    const emulator = spawn(EMULATOR, [`--device=${DEVICE}`, ...ends, ...faults], { stdio: ['ignore', 'pipe', 'inherit'] });
    const output = createInterface({ input: emulator.stdout })[Symbol.asyncIterator]();
    const link = new Link(near, far, emulator, output);
    const { value } = await output.next();
    if (value === 'up') {
      useCubic(near, FAR_ADDRESS);
      useCubic(far, NEAR_ADDRESS);
      return link;
    }
    await link.#remove();
    throw new Error('the link emulator did not start');
  }

  /** Takes the link down, and the namespaces with what still runs in them. */
  async close(): Promise<LinkCounters> {
    this.#emulator.kill('SIGTERM');
    const { value } = await this.#output.next();
    await this.#remove();
    return JSON.parse(value);
  }

  async #remove(): Promise<void> {
    if (this.#emulator.exitCode === null) await once(this.#emulator, 'exit');
    this.near.remove();
    this.far.remove();
  }
}

/** TCP runs with CUBIC (RFC 9438) here, whatever the machine's default is: it is what others meet in the field. */
function useCubic(from: Namespace, to: string): void {
  from.run('ip', 'route', 'replace', `${to}/32`, 'dev', DEVICE, 'congctl', 'cubic');
}

/** Runs `work` over a link, which is taken down whatever happens. @returns what the link counted */
export async function overLink(options: LinkOptions, work: (link: Link) => Promise<void>): Promise<LinkCounters> {
  const link = await Link.open(options);
  try {
    await work(link);
  } catch (error) {
    await link.close();
    throw error;
  }
  return link.close();
}
