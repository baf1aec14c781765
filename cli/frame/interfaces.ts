/** Names of network interfaces, as a person gives them. */
import type { Environment } from '../../transport/environment.ts';
import type { Output } from './output.ts';

/** Warns of interfaces to be left out that are not there, with those that are: a name that is mistyped leaves nothing out. */
export function warnOfInterfaces(output: Output, given: readonly string[], { network }: Pick<Environment, 'network'>): void {
  if (given.length === 0) return;
  const there = (network.interfaces?.() ?? []).map(({ name }) => name);
  for (const name of new Set(given)) {
    if (there.includes(name)) continue;
    const up = there.length === 0 ? 'none but loopback' : there.join(', ');
    const problem = `no interface is called ${JSON.stringify(name)}, whose addresses were to be kept back (--no-candidates-on)`;
    output.warn(`${problem}; interfaces that are up: ${up}`);
  }
}
