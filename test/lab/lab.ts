/** Shared by the lab's tests: the suite, which is skipped where it cannot run, and the contenders over a link. */
import { describe } from 'vitest';
import { Contenders } from '../../bench/contenders.ts';
import { type Selection, select } from '../../bench/peers.ts';
import { type Program, withChildren } from '../../bench/processes/parent.ts';
import { EmulatedLink } from './emulator.ts';
import { recordAbsent } from './figures.ts';
import { FAR_ADDRESS, FAR_BBR_ADDRESS, hasCongestionControl, type Link, type LinkCounters, type LinkOptions, over } from './link.ts';
import { NetemLink } from './netem.ts';

/** `SVC_LAB_PEERS`: as `--peers` of the benches, and `tcp-bbr`. */
const PEERS = process.env.SVC_LAB_PEERS ?? 'tcp,tcp-bbr,udx,iroh,libp2p-quic';
/** TCP under the kernel's BBR: the peer `tcp`, at another address. */
const BBR = 'tcp-bbr';
/** ms for one measurement of a peer. */
const PATIENCE = 120_000;

// Without vitest's main process the results are lost, so exit; vitest's own `process.exit` of a worker throws.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));

export const lab: typeof describe.skip = describe.skipIf(process.env.SVC_LAB_MISSING !== undefined);

/** Runs `work` over a link of the kind chosen for this run (`SVC_LAB_LINK`: `netem` or `emulator`). */
export async function overLink(options: LinkOptions, work: (link: Link) => Promise<void>): Promise<LinkCounters> {
  return over(process.env.SVC_LAB_LINK === 'netem' ? NetemLink.open(options) : await EmulatedLink.open(options), work);
}

/**
 * Runs `work` with svc-connect and the peers, which connect from the near end of the link to the far one. Peers that
 * cannot be measured are recorded.
 */
export function withContenders(
  link: Link,
  ours: readonly Program[],
  work: (contenders: Contenders) => Promise<void>,
  names: string = PEERS,
): Promise<void> {
  const { peers, absent } = selected(names);
  const places = {
    host: (name: string) => (name === BBR ? FAR_BBR_ADDRESS : FAR_ADDRESS),
    near: link.near.inside.bind(link.near),
    far: link.far.inside.bind(link.far),
    patience: PATIENCE,
  };
  return withChildren(async (start) => {
    const contenders = await Contenders.start(start, places, ours, peers, absent);
    await work(contenders);
    recordAbsent(contenders.absent);
  });
}

/** As in the benches, and BBR where the kernel has it. */
function selected(names: string): Selection {
  const wanted = names.split(',');
  const others = wanted.filter((name) => name !== BBR).join(',');
  const { peers, absent } = select(others === '' ? 'none' : others);
  if (!wanted.includes(BBR)) return { peers, absent };
  const [tcp] = select('tcp').peers;
  if (!hasCongestionControl('bbr') || tcp === undefined)
    return { peers, absent: { ...absent, [BBR]: 'this kernel has no BBR (net.ipv4.tcp_available_congestion_control)' } };
  return { peers: [...peers, { ...tcp, name: BBR }], absent };
}
