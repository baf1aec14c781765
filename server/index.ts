/** The base station: over any environment (`Basestation`), or complete in Node (`startBasestation`). */
export { Basestation, type BasestationOptions } from './basestation.ts';
export type { ProxyHeader } from './client-address.ts';
export type { HttpAnswer, HttpGet, HttpGetRequest, HttpPost, HttpRequest } from './outbound/http.ts';
export { type RunningBasestation, type StartOptions, startBasestation } from './start.ts';
export type { OutboundEvent } from './station/outbound-api.ts';
export { defaultSettings, type StationSettings } from './station/settings.ts';
export { openStationData, openStore, type StationData } from './storage/data-directory.ts';
export type { LastStart } from './storage/last-start.ts';
export type { OutboundStore, PushCredential, Service } from './storage/outbound-store.ts';
export { credentialRecord, openSealer, Sealer, serviceRecord } from './storage/sealing.ts';
export { hashSecret, newApiKeySecret, newId, newServerKey } from './storage/secrets.ts';
export { openSqliteStore } from './storage/sqlite.ts';
export type { ApiKey, App, AppChanges, AuthType, Device, JwtIssuer, Organization, Product, Store } from './storage/store.ts';
