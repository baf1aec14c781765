/**
 * Sends many datagrams with one system call.
 *
 * Most of a sender's cost per datagram is the way through Node and the kernel's network stack. With UDP_SEGMENT
 * (udp(7), Linux 4.18) the kernel takes one buffer and cuts it into datagrams as late as it can. So:
 *
 *   1. `send` queues the packet and requests a tick, in which all of them leave; earlier when they are many bytes.
 *   2. Packets for one destination with the length of the first, and a shorter one after them, form a run: they are
 *      concatenated and given to the kernel in one piece.
 *   3. When its buffer is full (EAGAIN) the oldest packet goes to libuv, which knows when the kernel takes more, and
 *      the others wait.
 *   4. When a run fails otherwise, its packets leave one by one: the kernel may not know UDP_SEGMENT (ENOPROTOOPT), the
 *      link may not compute checksums (EIO), the path may need smaller packets (EMSGSIZE, EINVAL before Linux 6.14), or
 *      memory may be short. If segments are too long for a path the kernel refuses shorter datagrams, too: so one that
 *      fails is retried without segmentation. If that fails, the datagram is lost.
 *
 * A datagram with a hop limit of its own leaves at once, before queued ones, and is lost if that fails: nothing depends
 * on a single one.
 */
import type { Socket } from 'node:dgram';
import { PacketQueue, type QueuedPacket, type Released, type Sender } from '../packet-queue.ts';
import { LimitedMessage } from './limited-message.ts';
import { encodeSocketAddress } from './socket-address.ts';
import { EAGAIN, MSG_DONTWAIT, SOL_UDP, type SystemCalls, UDP_SEGMENT, UNREACHABLE } from './system-calls.ts';

/**
 * Limit of one call: UDP_MAX_SEGMENTS of older kernels, and the payload of an IP packet of 65,535 bytes, rounded down.
 */
const MAX_SEGMENTS = 64;
const MAX_RUN = 65_000;
/** Queued bytes that leave before another packet is accepted: later they would have left a processor's cache. */
const MAX_QUEUED = 128 * 1024;

export class NativeSender implements Sender {
  readonly #calls: SystemCalls;
  readonly #fd: number;
  readonly #socket: Socket;
  readonly #queue = new PacketQueue();
  readonly #run = new Uint8Array(MAX_RUN);
  readonly #option = new Int32Array(1);
  /** Number of the oldest packets that leave one by one. */
  #singly = 0;
  /** The destination whose encoded address is cached. */
  #address = '';
  #port = 0;
  #to: Uint8Array | null = null;
  /** Bytes since the last flush. */
  #queued = 0;
  #asked = false;
  /** Waits for `begin`, or libuv has the oldest packet. */
  #waiting = true;
  #flushing = false;
  #closed = false;
  #limited: LimitedMessage | undefined;

  readonly #unreachable: (address: string) => void;

  /**
   * Sends nothing before `begin`. @param socket whose descriptor `fd` is @param unreachable as BindOptions.unreachable
   */
  constructor(calls: SystemCalls, fd: number, socket: Socket, unreachable: (address: string) => void = () => {}) {
    this.#unreachable = unreachable;
    this.#calls = calls;
    this.#fd = fd;
    this.#socket = socket;
  }

  /** Call when the previous sender of the socket has nothing in flight. */
  begin(): void {
    this.#waiting = false;
    this.#ask();
  }

  send(buffer: Uint8Array, offset: number, length: number, address: string, port: number, released: Released): void {
    if (this.#queued >= MAX_QUEUED) this.#flush();
    this.#queued += length;
    this.#queue.push(buffer, offset, length, address, port, released);
    if (!this.#waiting) this.#ask();
  }

  /** Never as one of several segments: {@link Sender.sendWithHopLimit}. */
  sendWithHopLimit(datagram: Uint8Array, address: string, port: number, hopLimit: number): boolean {
    const to = this.#closed ? null : encodeSocketAddress(address, port, this.#calls);
    if (to === null) return false;
    this.#limited ??= new LimitedMessage(this.#calls);
    this.#limited.set(datagram, to, hopLimit);
    const send = (): boolean => this.#calls.sendmsg(this.#fd, this.#limited!.header, MSG_DONTWAIT) >= 0;
    // The kernel may refuse it while a segment size is set, as in `#again`.
    return (this.#cutInto(0, datagram.length) && send()) || (this.#option[0] !== 0 && this.#cutInto(0, Number.POSITIVE_INFINITY) && send());
  }

  close(): void {
    this.#closed = true;
    this.#waiting = false;
    this.#ask();
  }

  #ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    process.nextTick(this.#tick);
  }

  readonly #tick = (): void => {
    this.#asked = false;
    this.#flush();
  };

  readonly #flush = (): void => {
    // The owner of a released packet may send at once.
    if (this.#flushing) return;
    this.#flushing = true;
    this.#queued = 0;
    try {
      while (this.#queue.length > 0 && !this.#waiting)
        for (let left = this.#closed ? this.#queue.length : this.#sendRun(); left > 0; left--) this.#queue.release();
    } finally {
      this.#flushing = false;
    }
  };

  /** @returns how many of the oldest packets have left or are lost, 0 = call again */
  #sendRun(): number {
    const first = this.#queue.at(0);
    const to = this.#destination(first.address, first.port);
    if (to === null) return 1;
    const count = this.#countRun(first);
    const bytes = count === 1 ? this.#queue.view(first) : this.#gather(count);
    const sent = this.#cutInto(count === 1 ? 0 : first.length, bytes.length) && this.#sendTo(bytes, to);
    if (!sent && this.#again(count)) return 0;
    if (this.#singly > 0) this.#singly--;
    return count;
  }

  #destination(address: string, port: number): Uint8Array | null {
    if (port === this.#port && address === this.#address) return this.#to;
    this.#address = address;
    this.#port = port;
    this.#to = encodeSocketAddress(address, port, this.#calls);
    return this.#to;
  }

  /**
   * Counts packets for one destination, each as long as the first, except that the last may be shorter. None of several
   * is empty.
   */
  #countRun({ address, port, length }: QueuedPacket): number {
    if (this.#singly > 0 || length === 0) return 1;
    const most = Math.min(this.#queue.length, MAX_SEGMENTS, Math.max(1, Math.floor(MAX_RUN / length)));
    for (let count = 1; count < most; count++) {
      const next = this.#queue.at(count);
      if (next.length > length || next.length === 0 || next.port !== port || next.address !== address) return count;
      if (next.length < length) return count + 1;
    }
    return most;
  }

  /** @returns the bytes of a run */
  #gather(count: number): Uint8Array {
    let length = 0;
    for (let i = 0; i < count; i++) {
      const packet = this.#queue.at(i);
      this.#run.set(this.#queue.view(packet), length);
      length += packet.length;
    }
    return this.#run.subarray(0, length);
  }

  /**
   * Sets the segment size for the next send.
   * @param segment bytes of each datagram, 0 = no segmentation
   * @param length bytes to send: a datagram no longer than a segment is not cut anyway
   */
  #cutInto(segment: number, length: number): boolean {
    const now = this.#option[0]!;
    if (segment === now || (segment === 0 && length <= now)) return true;
    this.#option[0] = segment;
    const done = this.#calls.setsockopt(this.#fd, SOL_UDP, UDP_SEGMENT, this.#option, this.#option.byteLength) === 0;
    if (!done) this.#option[0] = now;
    return done;
  }

  #sendTo(bytes: Uint8Array, to: Uint8Array): boolean {
    return this.#calls.sendto(this.#fd, bytes, bytes.length, MSG_DONTWAIT, to, to.length) >= 0;
  }

  /** None of the first `count` packets has left. @returns false when they are lost */
  #again(count: number): boolean {
    const errno = this.#calls.errno();
    if (errno === EAGAIN) this.#wait();
    else if (count > 1) this.#singly = count;
    else if (this.#option[0] !== 0) return this.#cutInto(0, Number.POSITIVE_INFINITY);
    else {
      if (UNREACHABLE.includes(errno) && !this.#closed) this.#unreachable(this.#address);
      return false;
    }
    return true;
  }

  #wait(): void {
    const first = this.#queue.at(0);
    this.#waiting = true;
    this.#cutInto(0, Number.POSITIVE_INFINITY);
    this.#socket.send(this.#queue.view(first), first.port, first.address, this.#left);
  }

  /** libuv has sent its packet. */
  readonly #left = (): void => {
    if (this.#closed) return;
    this.#waiting = false;
    this.#queue.release();
    this.#flush();
  };
}
