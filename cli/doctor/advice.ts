/** Advice for a connection that is not direct, or that failed: the exact command where there is one. */
import { StationMismatch } from '../../client/connect/relay.ts';
import type { ErrorCode, NotDirectCode, SvcError } from '../../client/node.ts';
import { errorMeaning } from '../../protocol/errors/index.ts';
import { DEFAULT_SERVER_PORT, parseServerUrl } from '../../runtime/station/index.ts';
import { hint } from '../frame/errors.ts';

/** Values that the advice names. */
export interface AdviceFacts {
  /** The device as a command names it: `home`, with `--state` if that was given. */
  readonly device: string;
  /** A UDP port of the base station's STUN; undefined if unknown. */
  readonly stunPort: number | undefined;
  /** `--relay-only` was given. */
  readonly relayOnly: boolean;
  /** `--no-hard-nat` was given. */
  readonly noHardNat: boolean;
  /**
   * Address of the device's router as the base station sees it, in the form of `--candidate` without a port; undefined
   * if unknown.
   */
  readonly outside: string | undefined;
  /** UDP port of the device's direct paths, as the device reports it; undefined if it does not. */
  readonly devicePort: number | undefined;
}

/** Default UDP port of a device towards the base station, and of its direct paths. */
const DEVICE_PORT = 5593;
/** Alternative ports for STUN, which many networks allow: that of RFC 8489. */
const STUN_PORTS = [3478, 4434] as const;

/** The command for a device with a forwarded port. */
function forward({ outside = '203.0.113.7', devicePort = DEVICE_PORT }: AdviceFacts): string {
  return `svc device --candidate ${outside}:${devicePort}`;
}

/** The command for a base station with another STUN port than the blocked one. */
function otherStun(shut: number): string {
  return `svc basestation --stun-port ${STUN_PORTS.find((port) => port !== shut)}`;
}

const ADVICE: Readonly<Record<NotDirectCode, (facts: AdviceFacts) => string>> = {
  DISABLED: ({ relayOnly, device }) =>
    relayOnly
      ? `Leave out --relay-only: \`svc doctor ${device}\`.`
      : `Pair with the device, \`svc pair ${device} --username <name>\`: it may seek direct paths with paired clients only. If this client is paired, start the device with \`svc device --rendezvous anyone\`.`,
  IN_PROGRESS: ({ device }) => `Wait a moment and run it again: \`svc doctor ${device}\`.`,
  PEER_TOO_OLD: () => 'Update the program on the device. Until then the connection stays relayed.',
  NO_CANDIDATES: (facts) =>
    `Connect both ends to a network, and leave out --no-candidates-on for one interface at each. If a router forwards a UDP port to the device, state its outside address: \`${forward(facts)}\`.`,
  UDP_BLOCKED: ({ devicePort = DEVICE_PORT }) =>
    `Allow UDP from any address to port ${devicePort} of the device (--p2p-port chooses another), and UDP out to any address at both ends, in the firewalls of the hosts and of the network.`,
  STUN_SILENT: ({ stunPort }) =>
    stunPort === undefined
      ? `Open the UDP port after the base station's own (4434 by default) in its firewall, or choose an open one: \`${otherStun(4434)}\`.`
      : `Open UDP port ${stunPort} in the firewall of the base station, or choose an open one: \`${otherStun(stunPort)}\`.`,
  BOTH_RANDOM: (facts) =>
    `Forward a UDP port of the device's router to port ${facts.devicePort ?? DEVICE_PORT} of the device, and state its outside address: \`${forward(facts)}\`. With IPv6 at both ends this is not needed.`,
  NO_ANSWER: (facts) =>
    `${facts.noHardNat ? 'Leave out --no-hard-nat, and allow' : 'Allow'} UDP from any address to port ${facts.devicePort ?? DEVICE_PORT} of the device, and out to any address at both ends, in the firewalls. If that is not enough, forward that port of its router, and state its outside address: \`${forward(facts)}\`.`,
  ONE_WAY: ({ devicePort = DEVICE_PORT }) =>
    `Compare the firewalls of both ends: each must let UDP out to any address and the answers in, and that of the device also UDP to its port ${devicePort}.`,
  LARGE_DROPPED: () =>
    'Give the VPN, tunnel or link between the ends an MTU of 1,280 bytes or more. Until then the connection stays relayed.',
  LIMITED: ({ device }) =>
    `Give the fingerprint of the device (--fingerprint, or its pairing string), so that the addresses it names are trusted, or run this again in a minute, or in an hour where random ports were tried: \`svc doctor ${device}\`.`,
};

/** For UDP to the base station that gets no answer. @param url of the base station */
export function udpAdvice(url: string | null): string {
  const { host, port } = parseServerUrl(url ?? '') ?? {};
  const place = host === undefined ? 'the base station' : `${host}, port ${port ?? DEFAULT_SERVER_PORT},`;
  return `Allow UDP out to ${place} in the firewall of this network, and the answers in. Until then everything goes over the WebSocket, and there are direct paths only on the local network.`;
}

/** Every code. */
export const notDirectCodes = Object.keys(ADVICE) as readonly NotDirectCode[];

/** One or two sentences on a connection that is not direct. */
export function adviceOn(code: NotDirectCode, facts: AdviceFacts): string {
  return ADVICE[code](facts);
}

/** The channels of a connect: names for programs and people. */
export const CHANNELS = { local: 'local network', remote: 'base station', direct: 'address' } as const;
export type ChannelName = keyof typeof CHANNELS;

/** The result of a channel. */
export interface ChannelResult {
  readonly code: ErrorCode;
  readonly error: SvcError | undefined;
  /** Whether the connect waited for the device, which was not attached to the base station. */
  readonly waited: boolean;
}

/** The meaning of a channel's result, in a clause. */
export function channelText(channel: ChannelName, { code, error, waited }: ChannelResult): string {
  if (code === 'OK') return 'it led to the device';
  if (code === 'NONE') return NOT_TRIED[channel];
  if (code !== 'OPERATION_IN_PROGRESS') return error?.message ?? errorMeaning(code);
  return isAwaited(channel, waited)
    ? 'the device was not attached, and did not attach in time'
    : 'it was still being tried when the connect ended';
}

const NOT_TRIED: Readonly<Record<ChannelName, string>> = {
  local: 'not tried: switched off (--no-local, --relay-only, or --address)',
  remote: 'not tried: no base station was given (--server) or remembered for a command without --address',
  direct: 'not tried: no address was given (--address) or remembered',
};

const NOT_ANNOUNCED =
  '`svc discover` lists the devices announced here; the device must run in this network, with mDNS, and UDP port 5353 open. Guest networks often isolate their hosts';
const STRANGER =
  'a device with these ids and another key answers there: a stranger, which changes nothing for the base station; if the device was set up again, `svc pair - --replace` reads the pairing string that it prints';
const OTHER_KEY =
  'an attacker may be in between; if the device was set up again, `svc pair - --replace` reads the pairing string that it prints';

/** Returns advice on the result of a channel; undefined without any. */
export function channelAdvice(channel: ChannelName, { code, error, waited }: ChannelResult): string | undefined {
  if (channel === 'local' && code === 'NOT_FOUND') return NOT_ANNOUNCED;
  if (channel === 'local' && code === 'FINGERPRINT_MISMATCH') return STRANGER;
  if (code === 'FINGERPRINT_MISMATCH' && !(error instanceof StationMismatch)) return OTHER_KEY;
  if (code === 'OPERATION_IN_PROGRESS') return isAwaited(channel, waited) ? hint('NOT_ATTACHED') : undefined;
  return hint(code);
}

function isAwaited(channel: ChannelName, waited: boolean): boolean {
  return channel === 'remote' && waited;
}
