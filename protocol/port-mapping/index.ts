/** Mapping of our own port at the gateway of our network: PCP (RFC 6887) and NAT-PMP (RFC 6886), without IO. */
export { NONCE_LENGTH, PCP_PORT } from './pcp.ts';
export { PortMapping, type PortMappingEvent, type PortMappingOptions } from './port-mapping.ts';
