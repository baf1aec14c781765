/**
 * Administration of a base station: its records with their rules, as plain functions over a store. A command, a REST
 * interface and a dashboard call the same functions. It uses no network and prints nothing.
 *
 * Each kind of record has its file; `rules.ts` defines valid values, `refusal.ts` the reasons for refusing a change.
 */

export { PROVIDER_URL } from '../push/account.ts';
export { type AttachedDevice, readStatus, type StationStatus } from '../status-socket.ts';
export { hasStore, openStore } from '../storage/data-directory.ts';
export { InvitationLifetime } from '../storage/invitation-store.ts';
export { type LastStart, readLastStart } from '../storage/last-start.ts';
export { openSealer } from '../storage/sealing.ts';
export type { ApiKey, Device, JwtIssuer, Organization, Product, Store } from '../storage/store.ts';
export { addApiKey, admitsNoAddress, type NewApiKey, removeApiKey } from './api-keys.ts';
export type { Administration } from './context.ts';
export { type AddedDevice, addDevice, type NewDevice, removeDevice, setFingerprint } from './devices.ts';
export {
  type InvitationRecord,
  invitations,
  inviteDevice,
  type MadeInvitation,
  type NewInvitationRequest,
  revokeInvitation,
  revokeInvitationsOf,
} from './invitations.ts';
export { isIpEntry } from './ip-list.ts';
export { addOrganization, type NewOrganization, removeOrganization } from './organizations.ts';
export { addProduct, type NewProduct, removeProduct } from './products.ts';
export {
  addPushCredential,
  type NewPushCredential,
  type PushCredentialRecord,
  pushCredentials,
  removePushCredential,
} from './push-credentials.ts';
export { AdministrationError, type RecordKind, type Refusal } from './refusal.ts';
export {
  checkAction,
  checkClaim,
  checkJwksUri,
  checkJwtText,
  checkName,
  checkProviderUrl,
  checkServerKey,
  checkServiceUrl,
  ServiceTimeout,
  serviceUrl,
} from './rules.ts';
export {
  addServerKey,
  changeServerKey,
  type NewServerKey,
  removeServerKey,
  type ServerKeyChanges,
  type ServerKeyRecord,
  serverKey,
  serverKeys,
} from './server-keys.ts';
export {
  type AttachedService,
  addService,
  attachService,
  detachService,
  type NewService,
  removeService,
  type ServiceRecord,
  service,
  services,
} from './services.ts';
