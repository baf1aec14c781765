/**
 * The pool of stream records, and the lookup by (connection, id): a chained hash table over the record slab.
 *
 * Records are divided so that one kind cannot starve another: byte streams take at most half of the slab, messages
 * being sent at most a quarter, messages being received what is left. The last records of each share (an eighth of the
 * slab) are for connections that hold few of the kind, so that one peer cannot keep out the others.
 */
import { MESSAGE_LIMIT, STREAM_SIZE, streamBucketMask, streamBuckets, streamCount, streamSlab } from '../memory/layout';
import { next, push, remove } from '../memory/list';
import { ALL_LIST, at, Connection } from '../records/connection';
import { ALL_LINK, address, DEFAULT_WEIGHT, MESSAGE, OWN, STREAM_USED, Stream, UNKNOWN } from '../records/stream';

/** Byte streams of a peer that count as few. */
const FEW_STREAMS: u32 = 4;

let freeHead: usize = 0;
let untouched: u32 = 0;
/** Records in use: byte streams, our messages, the peers' messages. */
export let byteStreams: u32 = 0;
export let ownMessages: u32 = 0;
export let peerMessages: u32 = 0;

export function tableInit(): void {
  freeHead = 0;
  untouched = 0;
  byteStreams = 0;
  ownMessages = 0;
  peerMessages = 0;
}

/** Byte streams, and messages, that one peer may hold open at a time: its guaranteed share of the slab. */
export function maxPeerStreams(): u32 {
  return streamCount / 2 - streamCount / 8;
}

export function maxPeerMessages(): u32 {
  return streamCount / 4;
}

/** Returns the record of stream `id`, null (0) when there is none. */
export function find(c: Connection, id: u64): Stream {
  let item = load<usize>(bucketOf(c, id));
  while (item) {
    const s = changetype<Stream>(item);
    if (s.id == id && s.connection == at(c)) return s;
    item = s.tableNext;
  }
  return changetype<Stream>(0);
}

/** Takes a record for stream `id` with OWN and MESSAGE of `flags`; null (0) when its share of the slab is used up. */
export function addStream(c: Connection, id: u64, flags: u32): Stream {
  if (!chargeable(c, flags)) return changetype<Stream>(0);
  const item = takeRecord();
  if (!item) return changetype<Stream>(0);
  const s = changetype<Stream>(item);
  const generation = s.generation + 1;
  memory.fill(item, 0, STREAM_USED);
  s.generation = generation;
  s.id = id;
  s.flags = flags;
  s.connection = at(c);
  s.finalSize = UNKNOWN;
  s.weight = <u8>(DEFAULT_WEIGHT - 1);
  s.window = flags & MESSAGE ? MESSAGE_LIMIT : c.initialStreamWindow;
  s.receiveLimit = s.window;
  s.sendLimit = flags & MESSAGE ? MESSAGE_LIMIT : c.peerStreamWindow;
  charge(flags, 1);
  const bucket = bucketOf(c, id);
  s.tableNext = load<usize>(bucket);
  store<usize>(bucket, item);
  push(at(c) + ALL_LIST, item, ALL_LINK);
  return s;
}

/** Gives the record back; the caller has released its buffers and lists. */
export function removeStream(c: Connection, s: Stream): void {
  let link = bucketOf(c, s.id);
  while (load<usize>(link) != address(s)) link = load<usize>(link) + offsetof<Stream>('tableNext');
  store<usize>(link, s.tableNext);
  remove(at(c) + ALL_LIST, address(s), ALL_LINK);
  charge(s.flags, -1);
  s.connection = 0;
  s.tableNext = freeHead;
  freeHead = address(s);
}

/** Returns whether the slab has a record for a stream of this kind and connection. */
function chargeable(c: Connection, flags: u32): bool {
  const last = streamCount / 8;
  if (!(flags & MESSAGE)) return within(byteStreams, streamCount / 2, last) || (byteStreams < streamCount / 2 && holdsFewStreams(c, flags));
  if (flags & OWN) return within(ownMessages, streamCount / 4, last) || (ownMessages < streamCount / 4 && !holdsOwnMessage(c));
  const all = byteStreams + ownMessages + peerMessages;
  return within(all, streamCount, last) || (all < streamCount && c.peerMessages == c.finishedPeerMessages);
}

/** Returns whether `used` of `most` leaves more than the `last` ones. */
function within(used: u32, most: u32, last: u32): bool {
  return used + last < most;
}

/** Only the peer's streams count; those we open are not limited here. */
function holdsFewStreams(c: Connection, flags: u32): bool {
  return (flags & OWN) != 0 || c.peerStreams - c.finishedPeerStreams < FEW_STREAMS;
}

/** Returns whether a message to this peer is waiting or unacknowledged. */
export function holdsOwnMessage(c: Connection): bool {
  for (let item = c.allHead; item; item = next(item, ALL_LINK)) {
    if ((changetype<Stream>(item).flags & (OWN | MESSAGE)) == (OWN | MESSAGE)) return true;
  }
  return false;
}

function takeRecord(): usize {
  const item = freeHead;
  if (item) {
    freeHead = changetype<Stream>(item).tableNext;
    return item;
  }
  return untouched < streamCount ? streamSlab + STREAM_SIZE * untouched++ : 0;
}

function charge(flags: u32, by: i32): void {
  if (!(flags & MESSAGE)) byteStreams += by;
  else if (flags & OWN) ownMessages += by;
  else peerMessages += by;
}

function bucketOf(c: Connection, id: u64): usize {
  const mixed = (id ^ ((<u64>at(c)) << 28)) * 0x9e37_79b9_7f4a_7c15;
  return streamBuckets + ((<u32>(mixed >> 32) & streamBucketMask) << 2);
}
