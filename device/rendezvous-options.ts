/** Options of direct paths: the clients with which the device searches for one, and the addresses that it offers. */

import { parseSocketAddress } from '../protocol/address.ts';
import { checkOptions, flag, type Kind, oneOf, texts } from '../protocol/arguments.ts';
import type { SocketAddress } from '../protocol/control/index.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { isPeerAddress } from '../runtime/rendezvous/index.ts';

/**
 * Clients with which a device searches for a direct path. `anyone`, the default: with every client, but only paired
 * keys learn the addresses of its interfaces. `paired`: only with paired keys and clients that have proved a password.
 * `off`: with none.
 */
export type RendezvousMode = 'anyone' | 'paired' | 'off';

/** Options of rendezvous; those left out keep their defaults. */
export interface RendezvousOptions {
  readonly mode?: RendezvousMode;
  /** False: no 256 sockets and no spraying where a NAT assigns random ports. Default true. */
  readonly hardNat?: boolean;
  /**
   * Addresses `ip:port` at which the device can be reached from outside, besides those it discovers: for example a
   * forwarded port.
   */
  readonly candidates?: readonly string[];
  /**
   * Names of interfaces whose addresses are not offered. A check sent over such an interface still reveals its address.
   */
  readonly noCandidatesOn?: readonly string[];
  /** Whether the device asks routers to map its port: `auto`, the default, by PCP and NAT-PMP; `off`: it does not. */
  readonly portMapping?: PortMapping;
}

/** Which protocols map the device's port at a router: `auto` is PCP and NAT-PMP, `off` none. */
export type PortMapping = 'auto' | 'off';

export const portMappings: readonly PortMapping[] = ['auto', 'off'];
export const rendezvousModes: readonly RendezvousMode[] = ['anyone', 'paired', 'off'];
/** Stated candidates of a device. */
export const MAX_STATED = 3;

/** Checked options. */
export interface RendezvousSettings {
  readonly mode: RendezvousMode;
  readonly hardNat: boolean;
  readonly candidates: readonly SocketAddress[];
  readonly noCandidatesOn: readonly string[];
  readonly portMapping: PortMapping;
}

export const defaultRendezvous: RendezvousSettings = {
  mode: 'anyone',
  hardNat: true,
  candidates: [],
  noCandidatesOn: [],
  portMapping: 'auto',
};

const KINDS: Record<keyof RendezvousOptions, Kind> = {
  mode: oneOf(rendezvousModes),
  hardNat: flag,
  candidates: texts,
  noCandidatesOn: texts,
  portMapping: oneOf(portMappings),
};

/**
 * @throws LocalError INVALID_ARGUMENT for an unknown option or mode, a value of the wrong type, an address that is not
 *   `ip:port`, one that does not belong to a single other host, or more than three of them
 */
export function checkRendezvous(given: RendezvousMode | RendezvousOptions): RendezvousSettings {
  const options = typeof given === 'string' ? { mode: given } : given;
  checkOptions('the rendezvous', options, KINDS);
  const { mode = 'anyone', hardNat = true, candidates = [], noCandidatesOn = [], portMapping = 'auto' } = options;
  if (candidates.length > MAX_STATED) throw new LocalError('INVALID_ARGUMENT', `a device has at most ${MAX_STATED} stated candidates`);
  return { mode, hardNat, candidates: candidates.map(statedCandidate), noCandidatesOn, portMapping };
}

/** Parses a stated candidate: `ip:port`, an IPv6 address in brackets. @throws LocalError INVALID_ARGUMENT */
export function statedCandidate(text: string): SocketAddress {
  const candidate = parseSocketAddress(text);
  if (!isPeerAddress(candidate.address))
    throw new LocalError(
      'INVALID_ARGUMENT',
      `${candidate.address} is not an address at which others reach this host: give the one outside`,
    );
  return candidate;
}
