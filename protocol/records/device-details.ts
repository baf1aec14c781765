/**
 * The record of `GET /iam/pairing`: what a device is, and how the requesting client may pair with it now (docs/iam.md).
 */
import { bytesOf } from '../arguments.ts';
import { decode, encode, map, optionalArrayField, optionalText } from '../cbor/index.ts';

/** Pairing modes in the order of the record. */
export const pairingModes = ['PasswordOpen', 'LocalOpen', 'PasswordInvite', 'LocalInitial'] as const;

export type PairingMode = (typeof pairingModes)[number];

/** Absent fields are not set on the device. */
export interface DeviceDetails {
  readonly modes: readonly PairingMode[];
  readonly svcVersion?: string;
  readonly appVersion?: string;
  readonly appName?: string;
  readonly productId?: string;
  readonly deviceId?: string;
  readonly friendlyName?: string;
}

const MAX_MODES = 64;
/** Texts of 1,024 bytes or more are refused (docs/iam.md). */
const MAX_TEXT = 1023;

/** Names on the wire, and fields. */
const texts = [
  ['SvcVersion', 'svcVersion'],
  ['AppVersion', 'appVersion'],
  ['AppName', 'appName'],
  ['ProductId', 'productId'],
  ['DeviceId', 'deviceId'],
  ['FriendlyName', 'friendlyName'],
] as const;

/** Body of the answer to `GET /iam/pairing`. */
export function encodeDeviceDetails(details: DeviceDetails): Uint8Array {
  const fields = texts.map(([name, field]) => [name, details[field]] as const);
  return encode({ Modes: details.modes, ...Object.fromEntries(fields) });
}

/** Skips modes with unknown names. @throws RemoteError PARSE */
export function decodeDeviceDetails(payload: Uint8Array): DeviceDetails {
  const body = map(decode(bytesOf('the details of a device', payload)));
  const modes = (optionalArrayField(body, 'Modes', MAX_MODES) ?? []).filter(isPairingMode);
  const fields = texts.flatMap(([name, field]) => {
    const value = optionalText(body, name, { max: MAX_TEXT });
    return value === undefined ? [] : [[field, value] as const];
  });
  return { modes, ...Object.fromEntries(fields) };
}

function isPairingMode(value: unknown): value is PairingMode {
  return pairingModes.some((mode) => mode === value);
}
