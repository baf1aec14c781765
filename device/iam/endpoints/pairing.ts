/**
 * The four ways in which a client can become a user (docs/iam.md). Flag, policies and circumstances are checked before
 * the body.
 */
import { Status } from '../../../protocol/coap/index.ts';
import { LocalError, RemoteError } from '../../../protocol/errors/index.ts';
import {
  decodeFingerprintName,
  decodeOpenPairing,
  decodePasswordOpenPairing,
  encodeDeviceDetails,
  type OpenPairing,
} from '../../../protocol/records/index.ts';
import type { DeviceCoapRequest } from '../../coap-resources.ts';
import type { Iam } from '../iam.ts';
import type { Rules } from '../rules.ts';
import { type Check, cborBody, endpoint, type IamEndpoint } from './endpoint.ts';

const PAIRED = { status: Status.CREATED };
const checks: readonly Check[] = ['action', 'body'];

export const pairingEndpoints: readonly IamEndpoint[] = [
  endpoint({
    method: 'GET',
    path: '/iam/pairing',
    action: 'IAM:GetPairing',
    checks: ['action'],
    answer: ({ iam, device, caller }) => {
      const { friendlyName } = iam.state;
      const details = { modes: iam.availablePairingModes(caller), ...device.details() };
      const payload = encodeDeviceDetails(friendlyName === undefined ? details : { ...details, friendlyName });
      return { status: Status.CONTENT, payload };
    },
  }),
  endpoint({
    method: 'POST',
    path: '/iam/pairing/local-open',
    pairing: 'LocalOpen',
    checks,
    read: (request, { rules }) => checked(decodeOpenPairing(cborBody(request)), rules),
    answer: async ({ iam, device, caller, address, pairingRates, body: { username, fingerprintName } }) => {
      const maxAge = pairingRates.take(address, device.clock.now());
      if (maxAge > 0) return { status: Status.TOO_MANY_REQUESTS, payload: 'Too many pairings, try again later', maxAge };
      await iam.pairLocalOpen(caller, username, fingerprintName);
      return PAIRED;
    },
  }),
  endpoint({
    method: 'POST',
    path: '/iam/pairing/password-open',
    pairing: 'PasswordOpen',
    checks,
    read: (request, { rules }) => checked(decodePasswordOpenPairing(cborBody(request)), rules),
    answer: async ({ iam, caller, body: { username, fingerprintName } }) => {
      await iam.pairPasswordOpen(caller, username, fingerprintName);
      return PAIRED;
    },
  }),
  endpoint({
    method: 'POST',
    path: '/iam/pairing/local-initial',
    pairing: 'LocalInitial',
    checks,
    read: readInitialName,
    answer: async ({ iam, caller, body }) => {
      await iam.pairLocalInitial(caller, body);
      return PAIRED;
    },
  }),
  endpoint({
    method: 'POST',
    path: '/iam/pairing/password-invite',
    pairing: 'PasswordInvite',
    checks,
    read: readInvitedName,
    answer: async ({ iam, caller, body }) => {
      await iam.pairPasswordInvite(caller, body);
      return PAIRED;
    },
  }),
];

function checked(pairing: OpenPairing, rules: Rules): OpenPairing {
  rules.username(pairing.username);
  if (pairing.fingerprintName !== undefined) rules.fingerprintName(pairing.fingerprintName);
  return pairing;
}

/** Returns the name of the fingerprint; undefined without a body. A body must have one. */
function readInitialName(request: DeviceCoapRequest, { rules }: Iam): string | undefined {
  if (request.payload.length === 0) return undefined;
  const name = decodeFingerprintName(cborBody(request));
  if (name === undefined) throw new LocalError('INVALID_ARGUMENT', 'FingerprintName is missing');
  rules.fingerprintName(name);
  return name;
}

/** Returns the optional name of the fingerprint: pairing continues without it if it is invalid. */
function readInvitedName(request: DeviceCoapRequest, { rules }: Iam): string | undefined {
  try {
    const name = decodeFingerprintName(cborBody(request));
    if (name !== undefined) rules.fingerprintName(name);
    return name;
  } catch (error) {
    if (error instanceof LocalError || error instanceof RemoteError) return undefined;
    throw error;
  }
}
