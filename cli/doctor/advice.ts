/** What a person can do where a connection is not direct, or where there is none: the exact command where there is one. */
import type { ErrorCode, NotDirectCode } from '../../client/node.ts';
import { hint } from '../frame/errors.ts';

/** What the advice names. */
export interface AdviceFacts {
  /** How the device is called in commands: `-d home`. */
  readonly device: string;
  /** A UDP port of the base station's STUN; undefined where it is not known. */
  readonly stunPort: number | undefined;
}

/** UDP port of a device towards the base station, and of its direct paths. */
const DEVICE_PORT = 5593;
const FORWARD = `svc device --data ./data/device --candidate 203.0.113.7:${DEVICE_PORT}`;

const ADVICE: Readonly<Record<NotDirectCode, (facts: AdviceFacts) => string>> = {
  DISABLED: () =>
    'Leave out --relay-only here. Start the device with `svc device --data ./data/device --rendezvous anyone`; where it looks for paths with paired clients only, pair with it: `svc pair`.',
  IN_PROGRESS: ({ device }) => `Wait a moment and ask again: \`svc doctor ${device}\`.`,
  PEER_TOO_OLD: () => 'Update the program on the device. Until then the connection stays relayed.',
  NO_CANDIDATES: () =>
    `Connect both ends to a network, and leave out --no-candidates-on for one interface at each. Where a router forwards a UDP port to the device, state its address outside: \`${FORWARD}\`.`,
  UDP_BLOCKED: () =>
    `Allow UDP from any address to port ${DEVICE_PORT} of the device (--p2p-port chooses another), and UDP out to any address at both ends, in the firewalls of the hosts and of the network.`,
  STUN_SILENT: ({ stunPort }) =>
    stunPort === undefined
      ? "Open the UDP port after the base station's own (4434 by default) in its firewall, or choose an open one: `svc basestation --data ./data/station --stun-port 4434`."
      : `Open UDP port ${stunPort} in the firewall of the base station, or choose an open one: \`svc basestation --data ./data/station --stun-port ${stunPort}\`.`,
  BOTH_RANDOM: () =>
    `Forward a UDP port of the device's router to port ${DEVICE_PORT} of the device, and state its address outside: \`${FORWARD}\`. IPv6 at both ends does without.`,
  NO_ANSWER: () =>
    `Allow UDP from any address to port ${DEVICE_PORT} of the device in its firewall. Where that is not enough, forward a UDP port of its router to it, and state the address outside: \`${FORWARD}\`.`,
  ONE_WAY: () =>
    `Compare the firewalls of both ends: each has to let UDP out to any address and the answers in, and the one of the device UDP to its port ${DEVICE_PORT}.`,
  LARGE_DROPPED: () =>
    'Give the VPN, tunnel or link between the ends an MTU of 1,280 bytes or more. Until then the connection stays relayed.',
  LIMITED: ({ device }) =>
    `Give the fingerprint of the device (--fingerprint, or its pairing string), so that it is believed where it is, or ask again in a minute: \`svc doctor ${device}\`.`,
};

/** Every code. */
export const notDirectCodes = Object.keys(ADVICE) as readonly NotDirectCode[];

/** One or two sentences on a connection that is not direct. */
export function adviceOn(code: NotDirectCode, facts: AdviceFacts): string {
  return ADVICE[code](facts);
}

/** The channels of a connect, as a program and a person call them. */
export const CHANNELS = { local: 'local network', remote: 'base station', direct: 'address' } as const;
export type ChannelName = keyof typeof CHANNELS;

/** What the result of a channel means. @returns undefined where the code has no words of its own here */
export function channelMeaning(channel: ChannelName, code: ErrorCode): string | undefined {
  if (code === 'OK') return 'it led to the device';
  if (code === 'NONE') return NOT_TRIED[channel];
  if (code === 'OPERATION_IN_PROGRESS') return 'it was still being tried when the connect ended';
  return undefined;
}

const NOT_TRIED: Readonly<Record<ChannelName, string>> = {
  local: 'not tried: switched off (--no-local, --relay-only, or --address)',
  remote: 'not tried: no base station was given (--server) or remembered',
  direct: 'not tried: no address was given (--address) or remembered',
};

/** What to do about the error of a channel; undefined where nothing is known. */
export function channelAdvice(channel: ChannelName, code: ErrorCode): string | undefined {
  if (channel === 'local' && code === 'NOT_FOUND')
    return '`svc discover` lists what is announced here; the device has to run in this network, with mDNS, and UDP port 5353 open. Guest networks often keep their hosts apart';
  return channelMeaning(channel, code) === undefined ? hint(code) : undefined;
}
