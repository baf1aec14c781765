/** The base station: over any environment (`Basestation`), or as a whole in Node (`startBasestation`). */
export { Basestation, type BasestationOptions } from './basestation.ts';
export { type RunningBasestation, type StartOptions, startBasestation } from './start.ts';
export { defaultSettings, type StationSettings } from './station/settings.ts';
export { openStationData, openStore, type StationData } from './storage/data-directory.ts';
export { hashSecret, newApiKeySecret, newId, newServerKey } from './storage/secrets.ts';
export { openSqliteStore } from './storage/sqlite.ts';
export type { ApiKey, App, AuthType, Device, Organization, Product, Store } from './storage/store.ts';
