/** Access control of a device from the client's side. */
export { IamError } from './errors.ts';
export { IamUtil } from './iam-util.ts';
export {
  choosePairingMode,
  missingForPairing,
  type PairingInput,
  type PairingKnowledge,
  type PairingOptions,
  type PairingResult,
  type PairOptions,
} from './pairing.ts';
export type { IamConnection } from './requests.ts';
export type { NewUser } from './user-requests.ts';
