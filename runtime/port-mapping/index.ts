/** Ports of this host mapped at its gateways. */
export { PortMapper, type PortMapperOptions } from './port-mapper.ts';
