/**
 * Memory for `sendmsg(2)` of one datagram with a hop limit of its own: a `struct msghdr` with the datagram, its
 * destination and one control message.
 *
 * The limit travels with the datagram, so no other packet of the socket can get it. The kernel follows the pointers in
 * the header, so their targets live as long as this object; the datagram is copied, since the memory of small arrays
 * may move.
 */
import { CONTROL, CONTROL_LENGTH, IOV, IOV_COUNT, IOV_FIELDS, NAME, NAME_LENGTH, writer } from './messages.ts';
import { LENGTH_IPV6 } from './socket-address.ts';
import { IP_TTL, IPPROTO_IP, IPPROTO_IPV6, IPV6_HOPLIMIT, type SystemCalls } from './system-calls.ts';

/** Fields of a header: the flags are the last. */
const FIELDS = 7;
/**
 * Fields of a `struct cmsghdr` (cmsg(3)): its length in the size of a pointer, then level, type and data, an `int`
 * each; rounded up to whole pointers.
 */
const CONTROL_FIELDS = 3;
const INT = 4;

export class LimitedMessage {
  /** `struct msghdr`, for the kernel. */
  readonly header: Uint8Array;
  readonly #calls: Pick<SystemCalls, 'addressOf' | 'pointerSize'>;
  readonly #name = new Uint8Array(new ArrayBuffer(LENGTH_IPV6));
  readonly #vector: Uint8Array;
  readonly #control: Uint8Array;
  #bytes = new Uint8Array(0);

  constructor(calls: Pick<SystemCalls, 'addressOf' | 'pointerSize'>) {
    const { pointerSize } = calls;
    this.#calls = calls;
    this.header = new Uint8Array(new ArrayBuffer(FIELDS * pointerSize));
    this.#vector = new Uint8Array(new ArrayBuffer(IOV_FIELDS * pointerSize));
    this.#control = new Uint8Array(new ArrayBuffer(pointerSize + CONTROL_FIELDS * INT + (pointerSize - INT)));
    const header = writer(this.header, pointerSize);
    header(NAME, calls.addressOf(this.#name));
    header(IOV, calls.addressOf(this.#vector));
    header(IOV_COUNT, 1n);
    header(CONTROL, calls.addressOf(this.#control));
    header(CONTROL_LENGTH, BigInt(this.#control.length));
    writer(this.#control, pointerSize)(0, BigInt(pointerSize + CONTROL_FIELDS * INT));
  }

  /** @param to as `encodeSocketAddress` returns it */
  set(datagram: Uint8Array, to: Uint8Array, hopLimit: number): void {
    const { pointerSize } = this.#calls;
    if (datagram.length > this.#bytes.length) this.#bytes = new Uint8Array(new ArrayBuffer(datagram.length));
    this.#bytes.set(datagram);
    const vector = writer(this.#vector, pointerSize);
    vector(0, this.#calls.addressOf(this.#bytes));
    vector(1, BigInt(datagram.length));
    this.#name.set(to);
    writer(this.header, pointerSize)(NAME_LENGTH, BigInt(to.length));
    const [level, type] = to.length === LENGTH_IPV6 ? [IPPROTO_IPV6, IPV6_HOPLIMIT] : [IPPROTO_IP, IP_TTL];
    new Int32Array(this.#control.buffer, pointerSize, CONTROL_FIELDS).set([level, type, hopLimit]);
  }
}
