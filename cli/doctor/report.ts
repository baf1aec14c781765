/** The findings of `svc doctor`, as a document for programs and as lines for people. */
import type {
  ChannelFailures,
  ErrorCode,
  HostInterface,
  KeepAliveReport,
  NatReport,
  NotDirect,
  PairReport,
  PathReport,
  SocketAddress,
  StunAnswer,
} from '../../client/node.ts';
import { isLoopback, parseAddress } from '../../protocol/address.ts';
import { overText, placeOf } from '../client/way.ts';
import { adviceOn, CHANNELS, type ChannelName, channelAdvice, channelText, udpAdvice } from './advice.ts';

/** An interface of this host. */
export interface InterfaceFinding extends HostInterface {
  /** False: left out by `--no-candidates-on`. */
  readonly counts: boolean;
}

/** The base station. */
export interface StationFinding {
  readonly url: string | null;
  readonly verified: 'pinned' | 'tls' | null;
  /** Null when it was not reached. */
  readonly at: SocketAddress | null;
  /** `websocket` where UDP to it is silent: `at` is then that of the TCP connection, which may end at a proxy. */
  readonly over: 'udp' | 'websocket';
  /** `host:port` of the HTTP proxy, without credentials. */
  readonly proxy: string | null;
  readonly observed: SocketAddress | null;
  readonly error: { readonly code: string; readonly text: string } | null;
  /** Answers of its STUN ports; empty where it has none. */
  readonly stun: readonly StunAnswer[];
}

/** The device, connected. */
export interface ConnectedFinding {
  readonly over: string;
  readonly way: string;
  readonly paths: readonly PathReport[];
  readonly pairs: readonly PairReport[];
  readonly remoteNat: NatReport | null;
  readonly whyNotDirect: (NotDirect & { readonly advice: string }) | null;
  readonly nextAttempt: number | null;
  readonly keepAlive: KeepAliveReport;
  /** UDP services of the device, with the datagrams that it has lost of each. */
  readonly udpServices: readonly { readonly id: string; readonly lost: number }[];
  /** The device gives its clients the least credit for streams: unread bytes fill their memory. */
  readonly cramped: boolean;
}

/** The device, not reached. */
export interface ChannelsFinding {
  readonly codes: Readonly<Record<ChannelName, ErrorCode>>;
  readonly failures: ChannelFailures;
  /** Whether the connect waited for the device, which was not attached to the base station. */
  readonly waited: boolean;
}

export interface Findings {
  /** `product.device`, null without a device. */
  readonly device: string | null;
  readonly interfaces: readonly InterfaceFinding[];
  /** Null where none is known. */
  readonly station: StationFinding | null;
  readonly localNat: NatReport | null;
  readonly connected: ConnectedFinding | null;
  readonly channels: ChannelsFinding | null;
}

const WIDTH = 20;

/** Returns the findings for programs. */
export function documentOf({ device, interfaces, station, localNat, connected, channels }: Findings): Record<string, unknown> {
  return {
    device,
    connected: device === null ? null : connected !== null,
    interfaces,
    station,
    nat: { local: localNat, remote: connected?.remoteNat ?? null },
    ...(connected !== null && {
      over: connected.over,
      paths: connected.paths,
      pairs: connected.pairs,
      whyNotDirect: connected.whyNotDirect,
      nextAttempt: connected.nextAttempt,
      keepAlive: connected.keepAlive,
      udpServices: connected.udpServices,
      cramped: connected.cramped,
    }),
    ...(channels !== null && { channels: Object.fromEntries(channelNames.map((name) => [name, channelDocument(name, channels)])) }),
  };
}

/** Returns the findings for people. */
export function linesOf(findings: Findings): string[] {
  const { device, connected, channels, interfaces, station } = findings;
  return [
    ...(device === null ? [] : [connected === null ? `not connected to ${device}` : `connected to ${device}, ${connected.way}`]),
    ...section(
      'interfaces',
      interfaces.length === 0 ? ['none but loopback, or this host does not list them'] : interfaces.map(interfaceLine),
    ),
    ...section('base station', stationLines(station)),
    ...section('NAT here', [localNatText(findings)]),
    ...(device === null ? section('what to do', stationAdvice(station)) : []),
    ...(connected === null ? [] : connectedLines(connected)),
    ...(channels === null
      ? []
      : section(
          'ways',
          channelNames.flatMap((name) => channelLines(name, channels)),
        )),
  ];
}

/** Returns advice for a reachable base station whose UDP, or STUN port, does not answer; else nothing. */
function stationAdvice(station: StationFinding | null): string[] {
  if (station?.over === 'websocket') return [udpAdvice(station.url)];
  const [first] = station?.stun ?? [];
  if (station?.at == null || first === undefined || station.stun.some(({ mapped }) => mapped !== null)) return [];
  return [
    adviceOn('STUN_SILENT', {
      device: '',
      stunPort: first.port,
      relayOnly: false,
      noHardNat: false,
      outside: undefined,
      devicePort: undefined,
    }),
  ];
}

/** One answer shows that there is a NAT, but not how it maps. */
function localNatText({ localNat, station, interfaces }: Findings): string {
  const mapped = station?.stun.find((answer) => answer.mapped !== null)?.mapped;
  const seen = (station?.observed ?? mapped)?.address;
  if (localNat?.mapping !== 'unknown' || seen === undefined || isOwn(seen, interfaces)) return natText(localNat, 'this host');
  return `there is one: from outside this host is ${seen}; how it assigns ports is unknown, as no STUN port answered`;
}

function isOwn(seen: string, interfaces: readonly HostInterface[]): boolean {
  const bytes = parseAddress(seen);
  if (bytes !== null && isLoopback(bytes)) return true;
  return interfaces.some(({ addresses }) => addresses.some((own) => own.split('/')[0] === seen));
}

/** The class of a NAT in plain words. @param end the host behind it */
export function natText(nat: NatReport | null, end: string): string {
  switch (nat?.mapping) {
    case 'none':
      return `none: the address of ${end} is the same from outside`;
    case 'independent':
      return 'assigns a socket one port for all peers, the best kind for direct paths';
    case 'sequential':
      return `assigns a socket another port for each peer, ${step(nat.stride ?? 1)}: the next one can be guessed`;
    case 'random':
      return 'assigns a socket a random port for each peer: a direct path needs a better NAT at the other end';
    default:
      return nat === null ? 'not checked' : 'unknown: there may be one';
  }
}

function step(stride: number): string {
  const signed = stride > 0x7fff ? stride - 0x1_0000 : stride;
  return `${Math.abs(signed)} ${signed < 0 ? 'down' : 'up'} from the last`;
}

function connectedLines({
  paths,
  pairs,
  remoteNat,
  whyNotDirect,
  nextAttempt,
  keepAlive,
  udpServices,
  cramped,
}: ConnectedFinding): string[] {
  const lossy = udpServices.filter(({ lost }) => lost > 0);
  return [
    ...section('keep-alive', [keepAliveText(keepAlive)]),
    ...(cramped ? section('streams', [CRAMPED]) : []),
    ...section('NAT of the device', [natText(remoteNat, 'the device')]),
    ...section('paths', [...paths].sort((a, b) => Number(b.active) - Number(a.active)).map(pathLine)),
    ...(pairs.length === 0 ? [] : section('tried', pairs.map(pairLine))),
    ...(whyNotDirect === null ? [] : section('not direct', [`${whyNotDirect.code}: ${whyNotDirect.text}`])),
    ...(whyNotDirect === null ? [] : section('what to do', [whyNotDirect.advice])),
    ...(nextAttempt === null ? [] : section('next attempt', [`in ${Math.ceil(nextAttempt / 1000)} s, while a connection is open`])),
    ...section(
      'UDP services',
      lossy.map(({ id, lost }) => `${id}: the device has lost ${lost} datagrams since it offers it, for lack of room or of a part`),
    ),
  ];
}

const CRAMPED = 'the device has little memory for them: bytes that its services or applications have not read fill it, so streams are slow';

/** Returns the known properties of the NAT of this host, and the keep-alive interval. */
export function keepAliveText({ state, timeout, isAtLeast, interval }: KeepAliveReport): string {
  const each = interval === null ? '' : `; keep-alive every ${seconds(interval)} s`;
  if (timeout !== null) return `the NAT keeps a mapping for ${isAtLeast ? 'at least' : 'about'} ${seconds(timeout)} s${each}`;
  return `${NOT_LEARNED[state]}${each}`;
}

const NOT_LEARNED: Readonly<Record<KeepAliveReport['state'], string>> = {
  off: 'how long the NAT keeps a mapping is not measured',
  learning: 'how long the NAT keeps a mapping is not known yet: a connection that stays open finds out within some minutes',
  learned: 'the NAT keeps no mapping for long',
  unfit: 'how long the NAT keeps a mapping cannot be measured here, for example because it has several outside addresses',
};

function seconds(time: number): number {
  return Math.round(time / 1000);
}

function interfaceLine({ name, addresses, kind, counts }: InterfaceFinding): string {
  const what = { default: 'the way to the internet', other: 'a network of its own', virtual: 'a container bridge or VPN, used last' }[kind];
  return `${name}  ${addresses.join(', ')}  ${counts ? what : 'left out: --no-candidates-on'}`;
}

function stationLines(station: StationFinding | null): string[] {
  if (station === null) return ['none given or remembered for a command without --address: name one with --server'];
  const { url, verified, at, observed, error, stun, over } = station;
  if (at === null) return [`${url ?? ''} was not reached: ${error?.text ?? ''}`];
  const proof = verified === 'pinned' ? ', pinned by its fingerprint' : verified === 'tls' ? ', authenticated by TLS' : '';
  return [
    `${over === 'websocket' && url !== null ? url : placeOf(at)}${proof}`,
    ...(over === 'udp' ? [] : [webSocketLine(station, at)]),
    ...(observed === null ? [] : [`it sees this host as ${placeOf(observed)}`]),
    ...(stun.length > 0 ? stun.map(stunLine) : over === 'udp' ? ['it named no STUN port, or its STUN was not checked'] : []),
  ];
}

function webSocketLine({ proxy }: StationFinding, at: SocketAddress): string {
  return `over a WebSocket ${proxy === null ? `at ${placeOf(at)}` : `through the proxy ${proxy}`}, as UDP to it gets no answer`;
}

function stunLine({ address, port, mapped }: StunAnswer): string {
  return `STUN at ${placeOf({ address, port })} ${mapped === null ? 'does not answer' : `sees this host as ${placeOf(mapped)}`}`;
}

function pathLine(path: PathReport): string {
  const { active, over, rtt, since } = path;
  const time = since === 0 ? '' : `  since ${new Date(since).toISOString().slice(0, 19)}Z`;
  return `${active ? 'active' : 'warm  '}  ${overText(over)}  ${placeOf(path)}${rtt === null ? '' : `  ${rtt.toFixed(1)} ms`}${time}`;
}

function pairLine(pair: PairReport): string {
  const { kind, state, reason, rtt } = pair;
  return `${placeOf(pair)}  ${kind}  ${state}: ${reason}${rtt === null ? '' : `, ${rtt.toFixed(1)} ms`}`;
}

const channelNames = Object.keys(CHANNELS) as ChannelName[];

function channelDocument(name: ChannelName, { codes, failures, waited }: ChannelsFinding): Record<string, unknown> {
  const result = { code: codes[name], error: failures[name], waited };
  const advice = channelAdvice(name, result);
  return { code: result.code, text: channelText(name, result), ...(advice !== undefined && { advice }) };
}

function channelLines(name: ChannelName, channels: ChannelsFinding): string[] {
  const { code, text, advice } = channelDocument(name, channels);
  return [`${CHANNELS[name]}  ${code}: ${text}`, ...(advice === undefined ? [] : [`  ${advice}`])];
}

/** Lines with a title before the first. */
function section(title: string, lines: readonly string[]): string[] {
  return lines.map((line, index) => `${(index === 0 ? title : '').padEnd(WIDTH)}${line}`);
}
