/** Datagrams of flows. */
export { decodeFlowDatagram, encodeFlowDatagram, type FlowDatagram, flowOf } from './flow-datagram.ts';
