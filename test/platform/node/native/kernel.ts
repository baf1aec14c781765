/**
 * A stand-in for the Linux calls of platform/node/native, in memory: UDP_SEGMENT as in the kernel, errors on demand,
 * and `recvmmsg` that follows its pointers, of 8 or 4 bytes.
 */
import type { Socket } from 'node:dgram';
import type { SystemCalls } from '../../../../platform/node/native/system-calls.ts';

export interface Sent {
  readonly bytes: number[];
  readonly to: number[];
  /** Sent by libuv, which waits until the kernel accepts more. */
  readonly libuv?: boolean;
  /** Level, type and value of its control message. */
  readonly control?: number[];
}

/** The simulated addresses of buffers lie this far apart. */
const APART = 1 << 24;

export class Kernel implements SystemCalls {
  /** Datagrams that have left. */
  readonly sent: Sent[] = [];
  /** System calls by name. */
  readonly called: string[] = [];
  /** Error of the next calls of that name, 0 = success. */
  readonly errors: { sendto: number[]; sendmsg: number[]; setsockopt: number[] } = { sendto: [], sendmsg: [], setsockopt: [] };
  /** Datagrams that wait to be received. */
  readonly waiting: { bytes: Uint8Array; from: Uint8Array }[] = [];
  /** Above this the kernel cannot segment: it refuses every send while such an option is set, with this error. */
  largestSegment = Number.POSITIVE_INFINITY;
  segmentError = 90;
  readonly pointerSize: number;
  segment = 0;
  #errno = 0;
  readonly #memory: Uint8Array[] = [];

  constructor(pointerSize = 8) {
    this.pointerSize = pointerSize;
  }

  errno(): number {
    return this.#errno;
  }

  getsockname(): number {
    return this.#fail(9);
  }

  getsockopt(): number {
    return this.#fail(9);
  }

  setsockopt(_fd: number, _level: number, _name: number, value: Int32Array): number {
    this.called.push('setsockopt');
    const error = this.errors.setsockopt.shift() ?? 0;
    if (error !== 0) return this.#fail(error);
    this.segment = value[0]!;
    return 0;
  }

  sendto(_fd: number, bytes: Uint8Array, length: number, _flags: number, to: Uint8Array, toLength: number): number {
    this.called.push('sendto');
    const error = this.errors.sendto.shift() ?? 0;
    if (error !== 0) return this.#fail(error);
    if (this.segment > this.largestSegment) return this.#fail(this.segmentError);
    const each = this.segment === 0 || length <= this.segment ? Math.max(1, length) : this.segment;
    for (let at = 0; at < Math.max(1, length); at += each)
      this.sent.push({ bytes: [...bytes.subarray(at, Math.min(at + each, length))], to: [...to.subarray(0, toLength)] });
    return length;
  }

  sendmsg(_fd: number, header: Uint8Array): number {
    this.called.push('sendmsg');
    const error = this.errors.sendmsg.shift() ?? 0;
    if (error !== 0) return this.#fail(error);
    if (this.segment > this.largestSegment) return this.#fail(this.segmentError);
    const [name, nameLength, vectors, vectorCount, control, controlLength] = this.#fields(header) as [
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    const [base, length] = this.#fields(this.#at(vectors)) as [number, number];
    const message = this.#at(control);
    if (vectorCount !== 1 || message.length !== controlLength || controlLength % this.pointerSize !== 0)
      throw new Error('not what the kernel could work with');
    if (this.segment !== 0 && length > this.segment) throw new Error('would be cut');
    if (this.#fields(message)[0] !== this.pointerSize + 12) throw new Error('not the length of an int');
    const view = new DataView(message.buffer, message.byteOffset + this.pointerSize);
    this.sent.push({
      bytes: [...this.#at(base).subarray(0, length)],
      to: [...this.#at(name).subarray(0, nameLength)],
      control: [0, 4, 8].map((at) => view.getInt32(at, true)),
    });
    return length;
  }

  /** Numbers of the interfaces eth1 to eth9. */
  if_nametoindex(name: string): number {
    return /^eth[1-9]$/.test(name) ? Number(name.slice(3)) : 0;
  }

  if_indextoname(index: number, name: Uint8Array): boolean {
    if (index > 9) return false;
    name.set(new TextEncoder().encode(`eth${index}`));
    return true;
  }

  addressOf(memory: Uint8Array | Uint32Array): bigint {
    this.#memory.push(new Uint8Array(memory.buffer, memory.byteOffset, memory.byteLength));
    return BigInt(this.#memory.length * APART);
  }

  recvmmsg(_fd: number, headers: Uint8Array, count: number): number {
    this.called.push('recvmmsg');
    const arrived = this.waiting.splice(0, count);
    if (arrived.length === 0) return this.#fail(11);
    for (const [i, { bytes, from }] of arrived.entries()) {
      const fields = this.#fields(headers.subarray(i * 8 * this.pointerSize));
      const [name, nameLength, vectors, vectorCount] = fields.slice(0, 4) as [number, number, number, number];
      if (vectorCount !== 1 || nameLength < from.length) throw new Error('not what the kernel could work with');
      const [base, room] = this.#fields(this.#at(vectors)) as [number, number];
      if (room < bytes.length) throw new Error('too little room');
      this.#at(base).set(bytes);
      this.#at(name).set(from);
      const view = new DataView(headers.buffer, headers.byteOffset + i * 8 * this.pointerSize);
      view.setUint32(this.pointerSize, from.length, true);
      view.setUint32(7 * this.pointerSize, bytes.length, true);
    }
    return arrived.length;
  }

  /**
   * Stand-in for the `dgram` socket of this descriptor: the kernel accepts its datagrams as soon as `room` is called.
   */
  socket(): { socket: Socket; room: () => void } {
    const held: (() => void)[] = [];
    const send = (bytes: Uint8Array, port: number, address: string, left: () => void): void => {
      if (this.segment !== 0 && bytes.length > this.segment) throw new Error('would be cut');
      held.push(() => {
        this.sent.push({ bytes: [...bytes], to: [port, ...address.split('.').map(Number)], libuv: true });
        left();
      });
    };
    const room = (): void => {
      for (const take of held.splice(0)) take();
    };
    return { socket: { send } as unknown as Socket, room };
  }

  /** The first fields of pointer size. */
  #fields(memory: Uint8Array): number[] {
    const view = new DataView(memory.buffer, memory.byteOffset);
    return Array.from({ length: Math.min(8, Math.floor(memory.length / this.pointerSize)) }, (_, i) =>
      this.pointerSize === 8 ? Number(view.getBigUint64(8 * i, true)) : view.getUint32(4 * i, true),
    );
  }

  #at(address: number): Uint8Array {
    return this.#memory[Math.floor(address / APART) - 1]!.subarray(address % APART);
  }

  #fail(errno: number): -1 {
    this.#errno = errno;
    return -1;
  }
}
