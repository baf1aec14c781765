/** What a person can do where a connection is not direct, or where there is none: the exact command where there is one. */
import { StationMismatch } from '../../client/connect/relay.ts';
import type { ErrorCode, NotDirectCode, SvcError } from '../../client/node.ts';
import { errorMeaning } from '../../protocol/errors/index.ts';
import { DEFAULT_SERVER_PORT, parseServerUrl } from '../../transport/station/index.ts';
import { hint } from '../frame/errors.ts';

/** What the advice names. */
export interface AdviceFacts {
  /** How a command names the device: `home`, with `--state` where that was given. */
  readonly device: string;
  /** A UDP port of the base station's STUN; undefined where it is not known. */
  readonly stunPort: number | undefined;
  /** `--relay-only` was given. */
  readonly relayOnly: boolean;
  /** `--no-hard-nat` was given. */
  readonly noHardNat: boolean;
  /** Where the base station sees the router of the device, as `--candidate` takes it without a port; undefined where it is not known. */
  readonly outside: string | undefined;
  /** UDP port of the device's direct paths, as it names it; undefined where it does not. */
  readonly devicePort: number | undefined;
}

/** UDP port of a device towards the base station, and of its direct paths, unless it has another. */
const DEVICE_PORT = 5593;
/** Another port for STUN, which many networks let through: that of RFC 8489. */
const STUN_PORTS = [3478, 4434] as const;

/** The device with a forwarded port. */
function forward({ outside = '203.0.113.7', devicePort = DEVICE_PORT }: AdviceFacts): string {
  return `svc device --candidate ${outside}:${devicePort}`;
}

/** The base station with another STUN port than the one that is shut. */
function otherStun(shut: number): string {
  return `svc basestation --stun-port ${STUN_PORTS.find((port) => port !== shut)}`;
}

const ADVICE: Readonly<Record<NotDirectCode, (facts: AdviceFacts) => string>> = {
  DISABLED: ({ relayOnly, device }) =>
    relayOnly
      ? `Leave out --relay-only: \`svc doctor ${device}\`.`
      : `Pair with the device, \`svc pair ${device} --username <name>\`: it may look for direct paths with paired clients only. Where this client is paired, start the device with \`svc device --rendezvous anyone\`.`,
  IN_PROGRESS: ({ device }) => `Wait a moment and ask again: \`svc doctor ${device}\`.`,
  PEER_TOO_OLD: () => 'Update the program on the device. Until then the connection stays relayed.',
  NO_CANDIDATES: (facts) =>
    `Connect both ends to a network, and leave out --no-candidates-on for one interface at each. Where a router forwards a UDP port to the device, state its address outside: \`${forward(facts)}\`.`,
  UDP_BLOCKED: ({ devicePort = DEVICE_PORT }) =>
    `Allow UDP from any address to port ${devicePort} of the device (--p2p-port chooses another), and UDP out to any address at both ends, in the firewalls of the hosts and of the network.`,
  STUN_SILENT: ({ stunPort }) =>
    stunPort === undefined
      ? `Open the UDP port after the base station's own (4434 by default) in its firewall, or choose one that is open: \`${otherStun(4434)}\`.`
      : `Open UDP port ${stunPort} in the firewall of the base station, or choose one that is open: \`${otherStun(stunPort)}\`.`,
  BOTH_RANDOM: (facts) =>
    `Forward a UDP port of the device's router to port ${facts.devicePort ?? DEVICE_PORT} of the device, and state its address outside: \`${forward(facts)}\`. With IPv6 at both ends this is not needed.`,
  NO_ANSWER: (facts) =>
    `${facts.noHardNat ? 'Leave out --no-hard-nat, and allow' : 'Allow'} UDP from any address to port ${facts.devicePort ?? DEVICE_PORT} of the device, and out to any address at both ends, in the firewalls. Where that is not enough, forward UDP port ${facts.devicePort ?? DEVICE_PORT} of its router to it, and state the address outside: \`${forward(facts)}\`.`,
  ONE_WAY: ({ devicePort = DEVICE_PORT }) =>
    `Compare the firewalls of both ends: each has to let UDP out to any address and the answers in, and the one of the device UDP to its port ${devicePort}.`,
  LARGE_DROPPED: () =>
    'Give the VPN, tunnel or link between the ends an MTU of 1,280 bytes or more. Until then the connection stays relayed.',
  LIMITED: ({ device }) =>
    `Give the fingerprint of the device (--fingerprint, or its pairing string), so that the addresses it names are trusted, or ask again in a minute: \`svc doctor ${device}\`.`,
};

/** Where UDP to the base station gets no answer. @param url of the base station */
export function udpAdvice(url: string | null): string {
  const { host, port } = parseServerUrl(url ?? '') ?? {};
  const place = host === undefined ? 'the base station' : `${host}, port ${port ?? DEFAULT_SERVER_PORT},`;
  return `Allow UDP out to ${place} in the firewall of this network, and the answers in. Until then everything goes over the WebSocket, and there is no direct path but on the local network.`;
}

/** Every code. */
export const notDirectCodes = Object.keys(ADVICE) as readonly NotDirectCode[];

/** One or two sentences on a connection that is not direct. */
export function adviceOn(code: NotDirectCode, facts: AdviceFacts): string {
  return ADVICE[code](facts);
}

/** The channels of a connect, as a program and a person call them. */
export const CHANNELS = { local: 'local network', remote: 'base station', direct: 'address' } as const;
export type ChannelName = keyof typeof CHANNELS;

/** What became of a channel. */
export interface ChannelResult {
  readonly code: ErrorCode;
  readonly error: SvcError | undefined;
  /** The device was not attached to the base station, and was waited for. */
  readonly waited: boolean;
}

/** What the result of a channel means, in a clause. */
export function channelText(channel: ChannelName, { code, error, waited }: ChannelResult): string {
  if (code === 'OK') return 'it led to the device';
  if (code === 'NONE') return NOT_TRIED[channel];
  if (code !== 'OPERATION_IN_PROGRESS') return error?.message ?? errorMeaning(code);
  return isAwaited(channel, waited) ? 'the device was not attached, and was waited for' : 'it was still being tried when the connect ended';
}

const NOT_TRIED: Readonly<Record<ChannelName, string>> = {
  local: 'not tried: switched off (--no-local, --relay-only, or --address)',
  remote: 'not tried: no base station was given (--server), nor remembered for a command without --address',
  direct: 'not tried: no address was given (--address) or remembered',
};

const NOT_ANNOUNCED =
  '`svc discover` lists what is announced here; the device has to run in this network, with mDNS, and UDP port 5353 open. Guest networks often keep their hosts apart';
const OTHER_KEY =
  'somebody may be in between; if the device was set up again, pair it again with `svc pair --replace` and the fingerprint that it prints at its start';

/** What to do about the result of a channel; undefined where nothing is known. */
export function channelAdvice(channel: ChannelName, { code, error, waited }: ChannelResult): string | undefined {
  if (channel === 'local' && code === 'NOT_FOUND') return NOT_ANNOUNCED;
  if (code === 'FINGERPRINT_MISMATCH' && !(error instanceof StationMismatch)) return OTHER_KEY;
  if (code === 'OPERATION_IN_PROGRESS') return isAwaited(channel, waited) ? hint('NOT_ATTACHED') : undefined;
  return hint(code);
}

function isAwaited(channel: ChannelName, waited: boolean): boolean {
  return channel === 'remote' && waited;
}
