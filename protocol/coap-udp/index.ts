/**
 * A CoAP server over UDP, sans-IO: the message layer of RFC 7252 and the blocks of RFC 7959. It does not handle the
 * requests.
 */
export { type BlockOutcome, BlockTransfers, type WholeRequest } from './block-transfers.ts';
export {
  type DatagramRequest,
  type Delivery,
  MessageLayer,
  type MessageLayerEvent,
  type OutgoingDatagram,
  type SentMessage,
} from './message-layer.ts';
