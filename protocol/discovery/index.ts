/** Discovery on the local network: multicast DNS and DNS-SD, without IO (PROTOCOL.md §11). */
export { type DiscoveredService, FoundServices, type ServiceChange, ServiceStream } from './found-services.ts';
export { browsedName, instanceOf } from './names.ts';
export { type DnsMessage, type DnsQuestion, type DnsRecord, dnsQuery, dnsResponse, recordKey, sameName } from './records.ts';
export { MDNS_PORT, type MdnsConflict, type MdnsSource, type OutgoingDnsMessage, Responder } from './responder.ts';
export { MAX_INSTANCES } from './scan-cache.ts';
export type { ScannedService } from './scanned-service.ts';
export { Scanner, type ServiceEvent } from './scanner.ts';
export { checkSubtype, type DeviceService, isSubtype, SERVICE_TYPE, SERVICE_TYPES, serviceRecords, subtypeName, TTL } from './service.ts';
export { idsOf, TxtItems, txtEntries } from './txt.ts';
