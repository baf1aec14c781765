/** Ports of this host mapped at its gateways. */
export { type Gateway, gatewaysWithOwn } from './gateways.ts';
export { PortMapper, type PortMapperOptions } from './port-mapper.ts';
