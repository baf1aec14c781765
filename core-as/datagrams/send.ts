/** Writes DATAGRAM frames into the packet under construction. */
import { DATAGRAM_LEN } from '../frames/types';
import { varintSize, writeVarint } from '../frames/varint';
import { frameSpace } from '../packet/size';
import { stageDatagram } from '../packet/staging';
import { Connection } from '../records/connection';
import { dequeue, drop, headLength, queueOf, waiting } from './queue';

/** Writes waiting datagrams, oldest first, from `to` up to `limit`; returns the address after the last. */
export function fillDatagrams(c: Connection, to: usize, limit: usize): usize {
  let end = to;
  while (waiting(c, true)) {
    const length = headLength(c, true);
    const header: u32 = 1 + varintSize(length);
    if (header + length > frameSpace(c)) {
      // Since it was queued, packets became smaller or got a Route header.
      drop(c, true);
      queueOf(c, true).dropped++;
      continue;
    }
    if (end + header + length > limit) break;
    end = writeVarint(writeVarint(end, DATAGRAM_LEN), length);
    end += dequeue(c, true, end);
    stageDatagram();
  }
  return end;
}
