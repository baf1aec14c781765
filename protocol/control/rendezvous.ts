/**
 * `/p2p/rendezvous` on the device, inside the connection with its client: both ends exchange the addresses at which
 * they may be reached directly, and the keys under which they accept checks (protocol/stun/). A base station can
 * neither read nor change this.
 *
 * `POST`, observed: `{Round, Tag, Key, Number, Candidates, Nat?}` begins a round; the 2.01 and each notification are
 * `{Tag, Key, Number, Candidates, Nat?, Opened}` of the device. `PUT`:
 * `{Round, Number, Candidates, Nat?, Opened, Spray?}` is the client's update, answered 2.04. Lists are complete; the
 * newest Number wins; Opened names the newest list of the peer to which openers were sent.
 *
 * Candidate: `{Ip, Port, Type: 0 host | 1 reflexive | 2 mapped}`. Nat:
 * `{Mapping: 0 unknown | 1 none | 2 independent | 3 sequential | 4 random, Last?, Stride?, Age?}`.
 */
import {
  arrayField,
  bytes,
  type CborMap,
  type CborValue,
  decode,
  encode,
  map,
  optionalBool,
  optionalMapField,
  optionalUint,
  uint,
} from '../cbor/index.ts';
import { defined } from '../defined.ts';
import { addressMap, readAddress, type SocketAddress } from './address.ts';
import { MAX_CANDIDATES } from './field-bounds.ts';

/** The origin of a candidate. */
export type CandidateType = 'host' | 'reflexive' | 'mapped';

/** An address at which an end may be reached directly. */
export interface Candidate extends SocketAddress {
  readonly type: CandidateType;
}

/**
 * The mapping behaviour of a NAT (RFC 4787 §4.1). `sequential` assigns each destination a port at a constant distance
 * from the last one, `random` any port.
 */
export type NatMapping = 'unknown' | 'none' | 'independent' | 'sequential' | 'random';

/** An end's findings about its NAT. */
export interface NatReport {
  readonly mapping: NatMapping;
  /** For a sequential NAT: the last port it assigned. */
  readonly last?: number;
  /** Distance to the next port modulo 65,536, 1 to 65,535: 65,535 is one down. */
  readonly stride?: number;
  /** Milliseconds since `last` was assigned. */
  readonly age?: number;
}

/** The fields that both ends send in each message. */
interface Lists {
  /** Number of this list; a newer list has a larger one. */
  readonly number: number;
  /** The whole list, at most MAX_CANDIDATES. */
  readonly candidates: readonly Candidate[];
  readonly nat?: NatReport;
}

/** The addressee of a check, and the key that authenticates it. */
interface CheckKeys {
  /** 8 bytes. */
  readonly tag: Uint8Array;
  /** 16 bytes. */
  readonly key: Uint8Array;
}

/** Body of `POST`: the client begins a round. */
export interface RendezvousOffer extends Lists, CheckKeys {
  readonly round: number;
}

/** The 2.01 response, and each notification of the device. */
export interface RendezvousState extends Lists, CheckKeys {
  /** Newest list of the client to which the device sent openers, 0 for none. */
  readonly opened: number;
}

/** Body of `PUT`: the client has another list, or has sent openers, or requests the sprayed stage. */
export interface RendezvousUpdate extends Lists {
  readonly round: number;
  /** Newest list of the device to which the client sent openers, 0 for none. */
  readonly opened: number;
  /** Both ends may begin the sprayed stage. */
  readonly spray?: boolean;
}

const TAG = { exact: 8 };
const KEY = { exact: 16 };
const U32 = { max: 0xffff_ffff };
const PORT = { min: 1, max: 0xffff };

/** The index is the number on the wire. */
const TYPES: readonly CandidateType[] = ['host', 'reflexive', 'mapped'];
const MAPPINGS: readonly NatMapping[] = ['unknown', 'none', 'independent', 'sequential', 'random'];

/** @throws LocalError INVALID_ARGUMENT for a candidate that is not numeric, as every encoder here */
export function encodeRendezvousOffer(offer: RendezvousOffer): Uint8Array {
  return encode({ Round: offer.round, Tag: offer.tag, Key: offer.key, ...listFields(offer) });
}

/** @throws RemoteError PARSE */
export function decodeRendezvousOffer(payload: Uint8Array): RendezvousOffer {
  const body = map(decode(payload));
  return { round: uint(body, 'Round', U32), ...readKeys(body), ...readLists(body) };
}

export function encodeRendezvousState(state: RendezvousState): Uint8Array {
  return encode({ Tag: state.tag, Key: state.key, ...listFields(state), Opened: state.opened });
}

/** @throws RemoteError PARSE */
export function decodeRendezvousState(payload: Uint8Array): RendezvousState {
  const body = map(decode(payload));
  return { ...readKeys(body), ...readLists(body), opened: uint(body, 'Opened', U32) };
}

export function encodeRendezvousUpdate(update: RendezvousUpdate): Uint8Array {
  return encode({ Round: update.round, ...listFields(update), Opened: update.opened, Spray: update.spray });
}

/** @throws RemoteError PARSE */
export function decodeRendezvousUpdate(payload: Uint8Array): RendezvousUpdate {
  const body = map(decode(payload));
  return defined({
    round: uint(body, 'Round', U32),
    ...readLists(body),
    opened: uint(body, 'Opened', U32),
    spray: optionalBool(body, 'Spray'),
  });
}

function listFields({ number, candidates, nat }: Lists): Record<string, CborValue | undefined> {
  return {
    Number: number,
    Candidates: candidates.map((candidate) => ({ ...addressMap(candidate), Type: TYPES.indexOf(candidate.type) })),
    Nat: nat === undefined ? undefined : natMap(nat),
  };
}

function readLists(from: CborMap): Lists {
  const nat = optionalMapField(from, 'Nat');
  return defined({
    number: uint(from, 'Number', U32),
    candidates: arrayField(from, 'Candidates', MAX_CANDIDATES).map((each) => readCandidate(map(each, 'a candidate'))),
    nat: nat === undefined ? undefined : readNat(nat),
  });
}

function readCandidate(from: CborMap): Candidate {
  return { ...readAddress(from), type: TYPES[uint(from, 'Type', { max: TYPES.length - 1 })]! };
}

function readKeys(from: CborMap): CheckKeys {
  return { tag: bytes(from, 'Tag', TAG), key: bytes(from, 'Key', KEY) };
}

function natMap({ mapping, last, stride, age }: NatReport): CborValue {
  return { Mapping: MAPPINGS.indexOf(mapping), Last: last, Stride: stride, Age: age };
}

function readNat(from: CborMap): NatReport {
  return defined({
    mapping: MAPPINGS[uint(from, 'Mapping', { max: MAPPINGS.length - 1 })]!,
    last: optionalUint(from, 'Last', PORT),
    stride: optionalUint(from, 'Stride', PORT),
    age: optionalUint(from, 'Age', U32),
  });
}
