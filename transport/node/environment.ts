/**
 * The environment of a product in Node: monotonic clock, native cryptography, UDP, the system's resolver, and a log on standard error.
 *
 * Timers keep no process alive, open sockets do: a running device stays, and one that closed its sockets lets the process end at once.
 */
import { lookup } from 'node:dns/promises';
import { Core } from '../../bindings/index.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { canonicalAddress } from '../address.ts';
import { type Environment, type Log, type Network, silentLog } from '../environment.ts';
import { clock } from './clock.ts';
import { nodeCrypto } from './crypto.ts';
import { bindUdp } from './udp.ts';

/** @param options.log where messages go, for example {@link stderrLog}; default nowhere. */
export function nodeEnvironment({ log = silentLog }: { log?: Log } = {}): Environment {
  return { clock, crypto: nodeCrypto, network: nodeNetwork(log), log, createCore: (options) => Core.load(options) };
}

function nodeNetwork(log: Log): Network {
  let sockets = 0;
  return {
    bind: (options) => bindUdp(options, sockets++, log),
    resolve: (host) => resolve(host),
  };
}

async function resolve(host: string): Promise<string[]> {
  const numeric = canonicalAddress(host);
  if (numeric !== null) return [numeric];
  try {
    const answers = await lookup(host, { all: true, verbatim: true });
    return [...new Set(answers.map(({ address }) => canonicalAddress(address) ?? address))];
  } catch (error) {
    throw new RemoteError('DNS', `${host} does not resolve to an address: check the name and this host's DNS`, { cause: error });
  }
}
