/** Names of network interfaces, as a person types them. */
import type { Environment } from '../../platform/environment.ts';
import type { Output } from './output.ts';

/** Warns of unknown interfaces, and lists the existing ones: a mistyped name would leave nothing out. */
export function warnOfInterfaces(output: Output, given: readonly string[], { network }: Pick<Environment, 'network'>): void {
  if (given.length === 0) return;
  const there = (network.interfaces?.() ?? []).map(({ name }) => name);
  for (const name of new Set(given)) {
    if (there.includes(name)) continue;
    const up = there.length === 0 ? 'none but loopback' : there.join(', ');
    const problem = `no interface is called ${JSON.stringify(name)} (--no-candidates-on)`;
    output.warn(`${problem}; interfaces that are up: ${up}`);
  }
}
