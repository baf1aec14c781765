/** What administration needs of the base station: its storage, and the making and checking of ids and secrets. No network. */

export { isIpEntry } from './administration/ip-list.ts';
export { addressClass } from './outbound/addresses.ts';
export { isProviderUrl, PROVIDER_URL, parseServiceAccount } from './push/account.ts';
export { newServiceSecret } from './services/signature.ts';
export { hasStore, openStore } from './storage/data-directory.ts';
export type { PushCredential, Service } from './storage/outbound-store.ts';
export { credentialRecord, openSealer, type Sealer, serviceRecord } from './storage/sealing.ts';
export { hashSecret, isServerKey, newApiKeySecret, newId, newServerKey } from './storage/secrets.ts';
export type { ApiKey, App, Device, Organization, Product, Store } from './storage/store.ts';
