/** A link of two veth devices, each with a netem queue (tc-netem(8)) for the packets it sends. */
import { spawnSync } from 'node:child_process';
import {
  type Both,
  type Counters,
  DEVICE,
  FAR_ADDRESS,
  type Link,
  type LinkCounters,
  type LinkOptions,
  NEAR_ADDRESS,
  PREFIX_LENGTH,
} from './link.ts';
import { Namespace } from './namespaces.ts';

const MTU = 1500;
/** Capacity in packets where no queue is configured. */
const MANY = 100_000;

/**
 * Whether this kernel has netem and `tc` supports it. @param namespace a fresh one, which keeps the queue on its
 * loopback
 */
export function netemWorks(namespace: string): boolean {
  const command = [
    'netns',
    'exec',
    namespace,
    'tc',
    'qdisc',
    'add',
    'dev',
    'lo',
    'root',
    ...netem({ rate: 1, delay: 1, jitter: 1, loss: 1 }, 0),
  ];
  return spawnSync('ip', command, { stdio: 'ignore' }).status === 0;
}

export class NetemLink implements Link {
  readonly near = new Namespace();
  readonly far = new Namespace();

  private constructor() {}

  static open(options: LinkOptions): NetemLink {
    const link = new NetemLink();
    link.near.run('ip', 'link', 'add', DEVICE, 'type', 'veth', 'peer', 'name', DEVICE, 'netns', link.far.name);
    for (const [index, end] of [link.near, link.far].entries()) {
      const address = index === 0 ? NEAR_ADDRESS : FAR_ADDRESS;
      end.run('ip', 'address', 'add', `${address}/${PREFIX_LENGTH}`, 'dev', DEVICE);
      // Each packet alone: netem would lose and delay many as one.
      end.run('ip', 'link', 'set', 'dev', DEVICE, 'mtu', String(options.mtu ?? MTU), 'gso_max_segs', '1', 'up');
      end.run('tc', 'qdisc', 'add', 'dev', DEVICE, 'root', ...netem(options, index));
    }
    return link;
  }

  async close(): Promise<LinkCounters> {
    const counters = { ab: counted(this.near), ba: counted(this.far) };
    this.near.remove();
    this.far.remove();
    return counters;
  }
}

/** @param direction 0 near → far, 1 back */
function netem({ rate = 0, queue = 0, delay = 0, jitter = 0, loss = 0, burst = 1, mtu = MTU }: LinkOptions, direction: number): string[] {
  const of = (value: Both): number => (typeof value === 'number' ? value : (value[direction] as number));
  // Its limit is in packets, and includes those in flight.
  const underWay = (of(rate) * 1000 * (of(delay) + of(jitter))) / 8;
  const limit = of(queue) === 0 ? MANY : Math.ceil((of(queue) + underWay) / mtu);
  // Its jitter is symmetric around the delay.
  const middle = of(delay) + of(jitter) / 2;
  return [
    ...['netem', 'limit', String(limit), 'delay', `${middle}ms`],
    ...(of(jitter) > 0 ? [`${of(jitter) / 2}ms`] : []),
    ...(of(loss) > 0 ? ['loss', ...lossModel(of(loss), of(burst))] : []),
    ...(of(rate) > 0 ? ['rate', `${of(rate)}mbit`] : []),
  ];
}

/** Bursts of the Gilbert model: the probabilities that one begins and that one ends. */
function lossModel(loss: number, burst: number): string[] {
  return burst === 1 ? [`${loss}%`] : ['gemodel', `${(100 * loss) / (burst * (100 - loss))}%`, `${100 / burst}%`];
}

function counted(end: Namespace): Counters {
  const [{ packets, bytes, drops }] = JSON.parse(end.run('tc', '-s', '-j', 'qdisc', 'show', 'dev', DEVICE));
  return { packets, bytes, lost: drops };
}
