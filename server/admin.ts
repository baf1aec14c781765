/** What administration needs of the base station: its storage, and the making and checking of ids and secrets. No network. */
export { isIpEntry } from './rest/ip-list.ts';
export { hasStore, openStore } from './storage/data-directory.ts';
export { hashSecret, isServerKey, newApiKeySecret, newId, newServerKey } from './storage/secrets.ts';
export type { ApiKey, App, Device, Organization, Product, Store } from './storage/store.ts';
