/** What a device is told of direct paths: with whom it looks for one, and which addresses it names. */
import type { SocketAddress } from '../protocol/control/index.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { parseSocketAddress } from '../transport/address.ts';
import { isPeerAddress } from '../transport/rendezvous/index.ts';

/**
 * With whom a device looks for a direct path. `anyone`, the default: with every client, but it tells only paired keys the addresses of its
 * interfaces. `paired`: only with paired keys and clients that have proved a password. `off`: with nobody.
 */
export type RendezvousMode = 'anyone' | 'paired' | 'off';

/** How a device takes part; what is left out keeps its default. */
export interface RendezvousOptions {
  readonly mode?: RendezvousMode;
  /** False: no 256 sockets and no spraying where a NAT gives out random ports. Default true. */
  readonly hardNat?: boolean;
  /** Addresses `ip:port` at which the device can be reached from outside besides what it finds out, such as a forwarded port. */
  readonly candidates?: readonly string[];
  /** Names of interfaces whose addresses are no candidates. A check that leaves over one shows its address all the same. */
  readonly noCandidatesOn?: readonly string[];
  /** Whether routers are asked to map the device's port: `auto`, the default, by PCP and NAT-PMP; `upnp`: by UPnP as well, which needs a package; `off`. */
  readonly portMapping?: PortMapping;
}

/** Which protocols ask a router to map the device's port: `auto` is PCP and NAT-PMP, `upnp` these and UPnP, `off` none. */
export type PortMapping = 'auto' | 'upnp' | 'off';

export const portMappings: readonly PortMapping[] = ['auto', 'upnp', 'off'];
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

/**
 * @throws LocalError INVALID_ARGUMENT for another mode, a value of the wrong type, an address that is not `ip:port`, or of no single host beyond this one, or
 * more than three of them
 */
export function checkRendezvous(given: RendezvousMode | RendezvousOptions): RendezvousSettings {
  if (typeof given !== 'string' && (typeof given !== 'object' || given === null || Array.isArray(given)))
    throw new LocalError('INVALID_ARGUMENT', 'the rendezvous is a mode or an object of options');
  const {
    mode = 'anyone',
    hardNat = true,
    candidates = [],
    noCandidatesOn = [],
    portMapping = 'auto',
  } = typeof given === 'string' ? { mode: given } : given;
  if (!rendezvousModes.includes(mode))
    throw new LocalError('INVALID_ARGUMENT', `the rendezvous is with "anyone", "paired", or "off", not ${JSON.stringify(mode)}`);
  if (!portMappings.includes(portMapping))
    throw new LocalError('INVALID_ARGUMENT', `the port mapping is "auto", "upnp", or "off", not ${JSON.stringify(portMapping)}`);
  if (typeof hardNat !== 'boolean') throw new LocalError('INVALID_ARGUMENT', 'hardNat of the rendezvous is true or false');
  for (const [name, list] of Object.entries({ candidates, noCandidatesOn })) {
    if (!isTexts(list)) throw new LocalError('INVALID_ARGUMENT', `${name} of the rendezvous is an array of texts`);
  }
  if (candidates.length > MAX_STATED) throw new LocalError('INVALID_ARGUMENT', `a device has at most ${MAX_STATED} stated candidates`);
  return { mode, hardNat, candidates: candidates.map(statedCandidate), noCandidatesOn, portMapping };
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

/** A candidate as a person states it: `ip:port`, an IPv6 address in brackets. @throws LocalError INVALID_ARGUMENT */
export function statedCandidate(text: string): SocketAddress {
  const candidate = parseSocketAddress(text);
  if (!isPeerAddress(candidate.address))
    throw new LocalError(
      'INVALID_ARGUMENT',
      `${candidate.address} is not an address at which others reach this host: give the one outside`,
    );
  return candidate;
}
