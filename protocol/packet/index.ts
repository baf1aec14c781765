/** Codecs of every packet of the wire (PROTOCOL.md §2). */
export { idHigh, idLow, isData, isRoute, packetId, routed } from './data.ts';
export {
  type Complete,
  decodeComplete,
  decodeRespond,
  decodeRetry,
  decodeVersions,
  encodeComplete,
  encodeRespond,
  encodeRetry,
  encodeVersions,
  type Respond,
  type Retry,
  type Versions,
} from './handshake.ts';
export { decodeInitiate, encodeInitiate, type Initiate, mac1Holds, mac1Key, padded } from './initiate.ts';
export {
  DATA_OVERHEAD,
  ID_LENGTH,
  INITIATE_PADDED,
  MAX_RETRY_TOKEN,
  PacketType,
  ROUTE_HEADER,
  SUITE,
  TOKEN_LENGTH,
  u32,
  VERSION,
  writeU16,
  writeU32,
} from './layout.ts';
export { decodeReset, encodeReset, RESET_LENGTH, type Reset } from './reset.ts';
