/** Discovery on the local network: multicast DNS and DNS-SD, without IO (PROTOCOL.md §11). */
export { type DnsMessage, type DnsQuestion, type DnsRecord, dnsQuery, dnsResponse, recordKey, sameName } from './records.ts';
export { MDNS_PORT, type MdnsConflict, type MdnsSource, type Outgoing, Responder } from './responder.ts';
export { checkSubtype, type DeviceService, SERVICE_TYPE, SERVICE_TYPES, serviceRecords, subtypeName, TTL } from './service.ts';
export { TxtItems } from './txt.ts';
