/** Datagrams of flows, whole and in parts. */
export {
  decodeFlowDatagram,
  decodeFlowPart,
  encodeFlowDatagram,
  encodeFlowPart,
  type FlowDatagram,
  type FlowPart,
  flowOf,
} from './flow-datagram.ts';
export { cutFlowDatagram, MAX_PARTS, PartSets } from './parts.ts';
