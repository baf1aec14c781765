/** Packets as they are sent, taken apart (PROTOCOL.md §2). Nothing is opened here. */
import { demand, hmac, Refused, sha256 } from './crypto.ts';

const ID = 8;
const MAC1_AT = 13;
const MAC1 = 16;
const BODY_AT = MAC1_AT + MAC1;
const RESET = 1 + ID + 16;
const MAX_TOKEN = 128;
const DATA_HEADER = 13;
const TAG = 16;

export interface Initiate {
  readonly kind: 'Initiate';
  readonly version: number;
  readonly suite: number;
  readonly source: Buffer;
  readonly token: Buffer;
  /** Noise message 1. */
  readonly message: Buffer;
  readonly mac1: Buffer;
  /** From the first byte to the end of what `length` counts. */
  readonly covered: Buffer;
}

export interface Data {
  readonly kind: 'Data';
  readonly phase: boolean;
  readonly destination: Buffer;
  /** The number as sent. */
  readonly masked: number;
  /** Associated data. */
  readonly header: Buffer;
  readonly sealed: Buffer;
}

export type Packet =
  | Initiate
  | { readonly kind: 'Retry'; readonly destination: Buffer; readonly token: Buffer }
  | { readonly kind: 'Respond'; readonly destination: Buffer; readonly source: Buffer; readonly message: Buffer }
  | { readonly kind: 'Complete'; readonly destination: Buffer; readonly message: Buffer }
  | { readonly kind: 'Reset'; readonly id: Buffer; readonly token: Buffer }
  | { readonly kind: 'Versions'; readonly source: Buffer; readonly versions: Buffer; readonly suites: Buffer }
  | { readonly kind: 'Route'; readonly route: Buffer; readonly packet: Buffer }
  | Data;

/** @throws Refused for what is no packet */
export function decodePacket(bytes: Buffer): Packet {
  demand(bytes.length > 1 + ID, 'too short for a packet');
  const id = bytes.subarray(1, 1 + ID);
  const rest = bytes.subarray(1 + ID);
  switch (bytes[0]) {
    case 0x80:
      return initiate(bytes);
    case 0x81:
      demand(rest.length <= MAX_TOKEN, 'a token that is too long');
      return { kind: 'Retry', destination: id, token: rest };
    case 0x82:
      return { kind: 'Respond', destination: id, source: rest.subarray(0, ID), message: rest.subarray(ID) };
    case 0x83:
      return { kind: 'Complete', destination: id, message: rest };
    case 0x84:
      demand(bytes.length === RESET, 'a Reset of another length');
      return { kind: 'Reset', id, token: rest };
    case 0x85:
      return versions(id, rest);
    case 0x88:
      demand(rest[0] !== 0x88, 'a Route packet in a Route packet');
      return { kind: 'Route', route: id, packet: rest };
    case 0xc0:
    case 0xe0:
      return data(bytes, id);
    default:
      throw new Refused(`the first byte ${bytes[0]}`);
  }
}

/** mac1 of an Initiate for a responder's name. */
export function mac1Of(name: string, covered: Uint8Array): Buffer {
  const key = sha256('svc mac1', name);
  const code = hmac(key, covered.subarray(0, MAC1_AT), Buffer.alloc(MAC1), covered.subarray(BODY_AT));
  return code.subarray(0, MAC1);
}

function initiate(bytes: Buffer): Packet {
  demand(bytes.length > BODY_AT, 'an Initiate that is too short');
  const end = BODY_AT + bytes.readUInt16BE(11);
  const messageAt = BODY_AT + 1 + bytes[BODY_AT]!;
  demand(end <= bytes.length && messageAt <= end && bytes[BODY_AT]! <= MAX_TOKEN, 'an Initiate whose lengths are wrong');
  return {
    kind: 'Initiate',
    version: bytes[1]!,
    suite: bytes[2]!,
    source: bytes.subarray(3, 3 + ID),
    token: bytes.subarray(BODY_AT + 1, messageAt),
    message: bytes.subarray(messageAt, end),
    mac1: bytes.subarray(MAC1_AT, BODY_AT),
    covered: bytes.subarray(0, end),
  };
}

function versions(source: Buffer, rest: Buffer): Packet {
  const suitesAt = 1 + rest[0]!;
  const end = suitesAt + 1 + (rest[suitesAt] ?? 0);
  demand(end <= rest.length, 'Versions that do not end');
  return { kind: 'Versions', source, versions: rest.subarray(1, suitesAt), suites: rest.subarray(suitesAt + 1, end) };
}

function data(bytes: Buffer, destination: Buffer): Packet {
  demand(bytes.length >= DATA_HEADER + TAG, 'a Data packet that is too short');
  return {
    kind: 'Data',
    phase: bytes[0] === 0xe0,
    destination,
    masked: bytes.readUInt32BE(1 + ID),
    header: bytes.subarray(0, DATA_HEADER),
    sealed: bytes.subarray(DATA_HEADER),
  };
}
