/**
 * Transport parameters and the other fields in the payloads of Noise messages 2 and 3: one CBOR map with text keys.
 *
 *   key             message  value
 *   IdleTimeout     2, 3     ms without a packet after which the sender forgets the connection; 0: never
 *   MaxUdpPayload   2, 3     largest UDP payload the sender takes, 1,200 to 65,527
 *   MaxData         2, 3     initial connection window, at least 2 R = 133,120
 *   MaxStreamData   2, 3     initial window of a byte stream (a message's is always R = 66,560)
 *   MaxStreams      2, 3     byte streams the receiver may hold open
 *   MaxMessages     2, 3     messages the receiver may hold open
 *   MaxAckDelay     2, 3     ms the sender may delay an acknowledgement, at most 16,383
 *   MaxDatagram     2, 3     largest DATAGRAM the sender takes; 0 or absent: none
 *   FlowParts       2, 3     parts of a datagram that the sender puts together (PROTOCOL.md §12); 0 or absent: none
 *   Id              2, 3     8 bytes, the sender's connection id; authenticates that of the header (as RFC 9000 §7.3)
 *   ResetToken      2, 3     16 bytes, reset token of that id
 *   Info            2        map with the responder's own description, e.g. {ProductId, DeviceId}
 *   Crowded         2        true: the responder may refuse with BUSY, so wait for its acknowledgement; absent: false
 *   Versions        3        byte string: versions the initiator offered, best first
 *   Suites          3        byte string: suites it offered, best first
 *
 * Unknown keys are ignored; a missing or impossible value raises a RemoteError PARSE.
 */
import { type DataParameters, MESSAGE_LIMIT } from '../../bindings/options.ts';
import { bytes, type CborMap, decode, encode, MapWriter, map, optionalBool, optionalMapField, optionalUint, uint } from '../cbor/index.ts';
import { MAX_PARTS } from '../datagrams/index.ts';
import { ID_LENGTH, TOKEN_LENGTH } from '../packet/index.ts';

/** Largest value that the core counts to; larger ones have the same effect. */
const MAX_AMOUNT = 0x7fff_ffff;
/** Both payloads are small and flat; `Info` is one level. */
const LIMITS = { depth: 4, items: 256 } as const;

/** The part of a message that describes its sender. */
export interface Offer {
  readonly parameters: DataParameters;
  /** Parts of a datagram that the sender puts together (PROTOCOL.md §12), up to 64; 0: none. */
  readonly flowParts: number;
  readonly id: Uint8Array;
  readonly resetToken: Uint8Array;
}

export interface ResponderOffer extends Offer {
  readonly info: Readonly<Record<string, unknown>>;
  readonly crowded: boolean;
}

export interface InitiatorOffer extends Offer {
  readonly versions: Uint8Array;
  readonly suites: Uint8Array;
}

/** Payload of Noise message 2. @param info the map `Info`, encoded */
export function encodeResponderOffer(offer: Offer & { readonly crowded?: boolean }, info: Uint8Array): Uint8Array {
  const fields = common(offer).item('Info', info);
  return (offer.crowded === true ? fields.item('Crowded', encode(true)) : fields).finish();
}

/** @throws RemoteError PARSE */
export function decodeResponderOffer(payload: Uint8Array): ResponderOffer {
  const fields = map(decode(payload, LIMITS), 'message 2');
  return { ...readCommon(fields), info: optionalMapField(fields, 'Info') ?? {}, crowded: optionalBool(fields, 'Crowded') ?? false };
}

/** Payload of Noise message 3. */
export function encodeInitiatorOffer(offer: InitiatorOffer): Uint8Array {
  return common(offer).bytes('Versions', offer.versions).bytes('Suites', offer.suites).finish();
}

/** @throws RemoteError PARSE */
export function decodeInitiatorOffer(payload: Uint8Array): InitiatorOffer {
  const fields = map(decode(payload, LIMITS), 'message 3');
  return {
    ...readCommon(fields),
    versions: bytes(fields, 'Versions', { min: 1, max: 255 }),
    suites: bytes(fields, 'Suites', { min: 1, max: 255 }),
  };
}

function common({ parameters, flowParts, id, resetToken }: Offer): MapWriter {
  const fields = new MapWriter()
    .uint('IdleTimeout', parameters.idleTimeout)
    .uint('MaxUdpPayload', parameters.maxUdpPayload)
    .uint('MaxData', parameters.initialMaxData)
    .uint('MaxStreamData', parameters.initialMaxStreamData)
    .uint('MaxStreams', parameters.maxStreams)
    .uint('MaxMessages', parameters.maxMessages)
    .uint('MaxAckDelay', parameters.maxAckDelay)
    .uint('MaxDatagram', parameters.maxDatagram);
  if (flowParts > 0) fields.uint('FlowParts', flowParts);
  return fields.bytes('Id', id).bytes('ResetToken', resetToken);
}

function readCommon(fields: CborMap): Offer {
  return {
    parameters: {
      idleTimeout: amount(fields, 'IdleTimeout'),
      maxUdpPayload: uint(fields, 'MaxUdpPayload', { min: 1200, max: 65_527 }),
      initialMaxData: amount(fields, 'MaxData', 2 * MESSAGE_LIMIT),
      initialMaxStreamData: amount(fields, 'MaxStreamData'),
      maxStreams: amount(fields, 'MaxStreams'),
      maxMessages: amount(fields, 'MaxMessages'),
      maxAckDelay: uint(fields, 'MaxAckDelay', { max: 16_383 }),
      maxDatagram: optionalUint(fields, 'MaxDatagram', { max: 65_527 }) ?? 0,
    },
    flowParts: Math.min(optionalUint(fields, 'FlowParts') ?? 0, MAX_PARTS),
    id: bytes(fields, 'Id', { exact: ID_LENGTH }),
    resetToken: bytes(fields, 'ResetToken', { exact: TOKEN_LENGTH }),
  };
}

function amount(fields: CborMap, name: string, min = 0): number {
  return Math.min(uint(fields, name, { min }), MAX_AMOUNT);
}
