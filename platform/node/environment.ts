/**
 * The environment of a product in Node: monotonic clock, native cryptography, UDP, the system's resolver, and a log on
 * standard error.
 *
 * Timers do not keep the process alive, open sockets do: a running device stays, and the process of one that closed its
 * sockets ends at once.
 */
import { Core } from '../../bindings/index.ts';
import { canonicalAddress } from '../../protocol/address.ts';
import { amount, checkOptions, type Kind, texts, whole } from '../../protocol/arguments.ts';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { aLog, type Environment, type Log, type MessagePipe, type Network, silentLog, type WebSocketOptions } from '../environment.ts';
import { checkLinkMtu, packetSizeFor } from '../udp-path.ts';
import { clock, keepProcess } from './clock.ts';
import { connectUdp } from './connected-udp.ts';
import { nodeCrypto } from './crypto.ts';
import { gatewaysOf, readDefaultRoutes, readInterfaces, recent } from './host-interfaces.ts';
import { withKeyAhead } from './key-ahead.ts';
import { nodeMdns } from './mdns.ts';
import { loadSystemCalls, type SystemCalls } from './native/system-calls.ts';
import { OutwardAddresses, sourceFor } from './outward-addresses.ts';
import { bindUdp } from './udp.ts';
import { checkBuffer } from './udp-buffers.ts';

/** Datagrams: a few round trips of a bulk transfer, more than a short command sends. */
const SYSTEM_CALLS_AFTER = 1000;

/** Settings that an operator may state about this host. */
export interface NodeEnvironmentOptions {
  /** Receives messages, for example {@link stderrLog}; default none. */
  log?: Log;
  /**
   * MTU of the host's links in bytes (`ip link`), 1,280 to 65,535: packets may then be that large, or must be that
   * small. Default: at most 1,452 bytes of UDP payload, and no more than the smallest interface of this host carries.
   */
  linkMtu?: number;
  /**
   * Largest packet that endpoints here send and receive, bytes of UDP payload, 1,200 to 65,000. Default 1,452, or what
   * `linkMtu` allows.
   */
  maxPacketSize?: number;
  /**
   * Kernel buffer to request per socket for waiting datagrams, bytes, from 65,536; default 8 MiB for arrivals, the
   * system's for departures. It may grant less (Linux: `net.core.rmem_max`): the log says so once, and `receiveBuffer`
   * of a socket and of a host's statistics reports the granted size.
   */
  receiveBuffer?: number;
  sendBuffer?: number;
  /**
   * Datagrams that a UDP socket carries through Node before it switches to its own system calls, which cost several
   * times less per datagram: Linux, with the optional dependency `@koromix/koffi-linux-…` installed. 0: from the start,
   * Infinity: never. Default 1,000.
   */
  systemCallsAfter?: number;
  /**
   * Names of the interfaces for multicast DNS; default those of the variable SVC_MDNS_INTERFACES, separated by commas,
   * else all but loopback, or loopback if there is no other. Names that this host does not have are ignored.
   */
  mdnsInterfaces?: readonly string[];
}

const KINDS: Record<keyof NodeEnvironmentOptions, Kind> = {
  log: aLog,
  linkMtu: amount,
  maxPacketSize: whole(1_200, 65_000),
  receiveBuffer: amount,
  sendBuffer: amount,
  systemCallsAfter: amount,
  mdnsInterfaces: texts,
};

/** @throws LocalError INVALID_ARGUMENT for a wrong type, a size out of range, or an unknown option */
export function nodeEnvironment(options: NodeEnvironmentOptions = {}): Environment {
  checkOptions('an environment', options, KINDS);
  const { log = silentLog } = options;
  return {
    clock,
    crypto: withKeyAhead(nodeCrypto),
    network: nodeNetwork(options, log),
    mdns: nodeMdns(options.mdnsInterfaces ?? process.env.SVC_MDNS_INTERFACES?.split(',')),
    getHttps: async (request) => (await import('./https.ts')).getHttps(request),
    keepProcess,
    log,
    createCore: (core) => Core.load(core),
  };
}

function nodeNetwork(options: NodeEnvironmentOptions, log: Log): Network {
  const { linkMtu, maxPacketSize = packetSizeFor(linkMtu), receiveBuffer, sendBuffer, systemCallsAfter = SYSTEM_CALLS_AFTER } = options;
  let calls: Promise<SystemCalls | null> | undefined;
  const settings = {
    log,
    systemCallsAfter: checkCount(systemCallsAfter),
    systemCalls: () => (calls ??= loadSystemCalls(log)),
    ...(linkMtu === undefined ? {} : { linkMtu: checkLinkMtu(linkMtu) }),
    ...(receiveBuffer === undefined ? {} : { receiveBuffer: checkBuffer(receiveBuffer) }),
    ...(sendBuffer === undefined ? {} : { sendBuffer: checkBuffer(sendBuffer) }),
  };
  const outward = process.platform === 'linux' ? null : new OutwardAddresses();
  const interfaces = recent(() => readInterfaces(outward?.now() ?? []));
  let sockets = 0;
  return {
    maxPacketSize,
    bind: (options) => bindUdp(options, sockets++, settings),
    connect: connectUdp,
    resolve: (host) => resolve(host),
    openWebSocket: (options) => openWebSocket(options, sockets++),
    nextIndex: () => sockets++,
    interfaces: () => interfaces(clock.now()),
    sourceAddress: (destination) => sourceFor(destination.includes(':') ? 'udp6' : 'udp4', destination),
    gateways: () => gatewaysOf(readDefaultRoutes()),
  };
}

/** Loads the library when the first WebSocket opens: that time is part of opening. */
async function openWebSocket(options: WebSocketOptions, index: number): Promise<MessagePipe> {
  const begun = clock.now();
  const webSocket = await import('./websocket.ts');
  return webSocket.openWebSocket({ ...options, timeout: options.timeout - (clock.now() - begun) }, index);
}

function checkCount(datagrams: number): number {
  if (datagrams === Number.POSITIVE_INFINITY || (Number.isInteger(datagrams) && datagrams >= 0)) return datagrams;
  throw new LocalError('INVALID_ARGUMENT', `${datagrams} is not a number of datagrams: use a whole number from 0, or Infinity for never`);
}

async function resolve(host: string): Promise<string[]> {
  const numeric = canonicalAddress(host);
  if (numeric !== null) return [numeric];
  try {
    // Loaded for names only.
    const { lookup } = await import('node:dns/promises');
    const answers = await lookup(host, { all: true, verbatim: true });
    return [...new Set(answers.map(({ address }) => canonicalAddress(address) ?? address))];
  } catch (error) {
    throw new RemoteError('DNS', `${host} does not resolve to an address: check the name and this host's DNS`, { cause: error });
  }
}
