/**
 * Sending in runs: segmentation, order of releases, a full buffer, and kernels, links and paths without segmentation.
 */
import { describe, expect, it } from 'vitest';
import { NativeSender } from '../../../../platform/node/native/sender.ts';
import { Kernel } from './kernel.ts';

const EPERM = 1;
const EIO = 5;
const EAGAIN = 11;
const EINVAL = 22;
const EMSGSIZE = 90;
const ENOPROTOOPT = 92;
const ENETUNREACH = 101;
const ENOBUFS = 105;
const HERE = '127.0.0.1';

const tick = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));

function setUp() {
  const kernel = new Kernel();
  const { socket, room } = kernel.socket();
  const unreachable: string[] = [];
  const sender = new NativeSender(kernel, 3, socket, (address) => unreachable.push(address));
  sender.begin();
  const released: number[] = [];
  const memory = new Uint8Array(4 << 20);
  let at = 0;
  /** Packets of these lengths, each filled with its number. */
  const send = (lengths: readonly number[], address = HERE, port = 4433): void => {
    for (const length of lengths) {
      memory.fill(++at, at * 2048, at * 2048 + length);
      sender.send(memory, at * 2048, length, address, port, (offset) => released.push(offset / 2048));
    }
  };
  /** Numbers and lengths of the datagrams that left, and their sender. */
  const left = () => kernel.sent.map(({ bytes, libuv }) => `${bytes[0] ?? '-'}:${bytes.length}${libuv === true ? ' libuv' : ''}`);
  return { kernel, sender, room, released, send, left, unreachable };
}

it('reports an unreachable address once a single packet fails, and no other errors', async () => {
  const { kernel, send, released, unreachable } = setUp();
  kernel.errors.sendto = [ENETUNREACH, EPERM, EAGAIN];
  send([20]);
  send([20], '127.0.0.2');
  await tick();
  expect([unreachable, released]).toEqual([[HERE], [1, 2]]);
});

describe('sending in runs', () => {
  it('sends packets of one length to one destination in one call, a shorter one last', async () => {
    const { kernel, send, left, released } = setUp();
    send([1452, 1452, 1452, 300]);
    expect([kernel.sent, released]).toEqual([[], []]);
    await tick();
    expect(left()).toEqual(['1:1452', '2:1452', '3:1452', '4:300']);
    expect(kernel.called).toEqual(['setsockopt', 'sendto']);
    expect(kernel.sent[3]).toEqual({
      bytes: new Array(300).fill(4),
      to: [2, 0, 4433 >> 8, 4433 & 255, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
    });
    expect(released).toEqual([1, 2, 3, 4]);
  });

  it('starts a new run for a longer packet, after a shorter one, for an empty one and for another destination', async () => {
    const { kernel, send, left, released } = setUp();
    send([100, 100, 200, 200, 50, 50, 0, 50]);
    send([50], HERE, 4434);
    send([50], '127.0.0.2', 4434);
    send([50], '::1', 4434);
    await tick();
    expect(left()).toEqual(['1:100', '2:100', '3:200', '4:200', '5:50', '6:50', '-:0', '8:50', '9:50', '10:50', '11:50']);
    expect(kernel.sent.slice(-3).map(({ to }) => to.length)).toEqual([16, 16, 28]);
    expect(kernel.called.filter((name) => name === 'sendto').length).toBe(8);
    expect(released).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });

  it('sends as many in a run as the kernel accepts: 64, and 65,000 bytes', async () => {
    const { kernel, send, left } = setUp();
    send(new Array(130).fill(20));
    await tick();
    expect(kernel.called).toEqual(['setsockopt', 'sendto', 'sendto', 'sendto']);
    send(new Array(90).fill(1452));
    await tick();
    expect(kernel.called.slice(4)).toEqual(['setsockopt', 'sendto', 'sendto', 'sendto']);
    expect(left().length).toBe(220);
  });

  it('sends many bytes before it accepts more, and releases none before its own send has returned', async () => {
    const { kernel, send, released } = setUp();
    send(new Array(90).fill(1500));
    expect([kernel.sent.length, released.length]).toEqual([88, 88]);
    await tick();
    expect(released).toEqual(Array.from({ length: 90 }, (_, i) => i + 1));
  });

  it('sends a packet longer than the segments before it unsegmented', async () => {
    const { kernel, send, left } = setUp();
    send([1200, 1200]);
    send([40], HERE, 1);
    send([1452], HERE, 1);
    await tick();
    expect(left()).toEqual(['1:1200', '2:1200', '3:40', '4:1452']);
    expect(kernel.called).toEqual(['setsockopt', 'sendto', 'sendto', 'setsockopt', 'sendto']);
  });

  it('leaves a full buffer to libuv, and continues in order after it', async () => {
    const { kernel, sender, room, send, left, released } = setUp();
    kernel.errors.sendto.push(0, EAGAIN);
    send([1000, 1000]);
    send([1400, 1400, 1400], HERE, 9);
    await tick();
    send([1400], HERE, 9);
    await tick();
    expect([left(), released]).toEqual([
      ['1:1000', '2:1000'],
      [1, 2],
    ]);
    room();
    expect(left().slice(2)).toEqual(['3:1400 libuv', '4:1400', '5:1400', '6:1400']);
    expect(released).toEqual([1, 2, 3, 4, 5, 6]);
    sender.close();
  });

  it.each([
    ['a kernel that does not know UDP_SEGMENT', { setsockopt: [ENOPROTOOPT] }],
    ['a link that computes no checksums', { sendto: [EIO] }],
    ['a path whose packets are smaller', { sendto: [EMSGSIZE] }],
    ['a kernel that has no memory for a run', { sendto: [ENOBUFS] }],
    ['a process that may not set options', { setsockopt: [EPERM] }],
  ])('sends one by one without segmentation: %s', async (_, errors) => {
    const { kernel, send, left, released } = setUp();
    Object.assign(kernel.errors, errors);
    send([1452, 1452, 10]);
    await tick();
    expect(left()).toEqual(['1:1452', '2:1452', '3:10']);
    expect(released).toEqual([1, 2, 3]);
    // The cause may apply to that path alone: the next run is tried again.
    kernel.called.length = 0;
    send([1452, 1452]);
    await tick();
    expect(kernel.called.filter((name) => name === 'sendto').length).toBe(1);
  });

  it.each([EMSGSIZE, EINVAL])(
    'loses nothing where the kernel refuses even short datagrams while segments are too long, error %d',
    async (error) => {
      const { kernel, send, left } = setUp();
      kernel.largestSegment = 1200;
      kernel.segmentError = error;
      send([1452, 1452, 1452, 30]);
      await tick();
      send([20]);
      await tick();
      expect(left()).toEqual(['1:1452', '2:1452', '3:1452', '4:30', '5:20']);
    },
  );

  it('releases packets that cannot be delivered: UDP promises no more', async () => {
    const { kernel, send, left, released } = setUp();
    // The run, then each of its packets, the first also without the option; and the next one.
    kernel.errors.sendto.push(ENETUNREACH, ENETUNREACH, ENETUNREACH, ENETUNREACH, ENETUNREACH);
    send([100, 100]);
    send([70], HERE, 7);
    send([1], 'fe80::1%no-such-zone', 7);
    send([2]);
    await tick();
    expect(left()).toEqual(['5:2']);
    expect(released).toEqual([1, 2, 3, 4, 5]);
  });

  it('waits to begin until the previous sender has finished, and may be closed before', async () => {
    const kernel = new Kernel();
    const sender = new NativeSender(kernel, 3, kernel.socket().socket);
    const released: number[] = [];
    const send = (offset: number) => sender.send(new Uint8Array(8), offset, 1, HERE, 1, (given) => released.push(given));
    send(1);
    await tick();
    expect([kernel.sent.length, released]).toEqual([0, []]);
    sender.begin();
    await tick();
    expect([kernel.sent.length, released]).toEqual([1, [1]]);

    const closed = new NativeSender(kernel, 3, kernel.socket().socket);
    closed.send(new Uint8Array(8), 2, 1, HERE, 1, (given) => released.push(given));
    closed.close();
    await tick();
    closed.begin();
    await tick();
    expect([kernel.sent.length, released]).toEqual([1, [1, 2]]);
  });

  it('accepts packets as soon as some were released, in order and once', { tags: ['slow'] }, async () => {
    const kernel = new Kernel();
    const sender = new NativeSender(kernel, 3, kernel.socket().socket);
    sender.begin();
    const released: number[] = [];
    const memory = new Uint8Array(1 << 20);
    let sent = 0;
    const send = (): void => {
      // Its turn comes when it is queued, which is after packets that others send within this call.
      sender.send(memory, 0, 1400, HERE, 1, () => {
        released.push(kernel.sent.length);
        if (sent++ < 200) send();
      });
    };
    for (let i = 0; i < 100; i++) send();
    for (let i = 0; i < 10; i++) await tick();
    expect([released.length, kernel.sent.length]).toEqual([300, 300]);
    expect(released).toEqual(released.toSorted((a, b) => a - b));
  });

  it('sends nothing after close and releases everything once, including packets at libuv', async () => {
    const { kernel, sender, room, send, left, released } = setUp();
    kernel.errors.sendto.push(EAGAIN);
    send([100, 100]);
    await tick();
    sender.close();
    send([100]);
    expect(released).toEqual([]);
    await tick();
    expect(released).toEqual([1, 2, 3]);
    room();
    expect([released, left()]).toEqual([[1, 2, 3], ['1:100 libuv']]);
  });

  it.each([8, 4])('gives a hop limit to one datagram alone, with pointers of %d bytes', async (pointerSize) => {
    const kernel = new Kernel(pointerSize);
    const sender = new NativeSender(kernel, 3, kernel.socket().socket);
    expect(sender.sendWithHopLimit(Uint8Array.of(1, 2, 3), '192.0.2.1', 0x1234, 4)).toBe(true);
    expect(sender.sendWithHopLimit(Uint8Array.of(9), '2001:db8::1', 1, 7)).toBe(true);
    expect(kernel.sent[0]).toEqual({ bytes: [1, 2, 3], to: [2, 0, 0x12, 0x34, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0], control: [0, 2, 4] });
    expect(kernel.sent[1]).toMatchObject({ bytes: [9], control: [41, 52, 7] });
    expect(kernel.sent[1]!.to.length).toBe(28);
  });

  it('never segments a datagram with a hop limit, nor loses it beside a run', async () => {
    const { kernel, sender, send, left } = setUp();
    send([60, 60, 30]);
    await tick();
    expect(kernel.segment).toBe(60);
    expect(sender.sendWithHopLimit(new Uint8Array(76).fill(8), HERE, 1, 4)).toBe(true);
    expect(kernel.segment).toBe(0);
    send([1200, 1200]);
    await tick();
    kernel.errors.sendmsg.push(EMSGSIZE);
    expect(sender.sendWithHopLimit(new Uint8Array(76).fill(9), HERE, 1, 4)).toBe(true);
    expect(left()).toEqual(['1:60', '2:60', '3:30', '8:76', '4:1200', '5:1200', '9:76']);
  });

  it("drops a datagram with a hop limit when the kernel's buffer is full, for an unknown zone, and when closed", async () => {
    const { kernel, sender, room, send, left } = setUp();
    kernel.errors.sendto.push(EAGAIN);
    kernel.errors.sendmsg.push(EAGAIN);
    send([100]);
    await tick();
    expect(sender.sendWithHopLimit(Uint8Array.of(1), HERE, 1, 4)).toBe(false);
    expect(sender.sendWithHopLimit(Uint8Array.of(1), 'fe80::1%no-such-zone', 1, 4)).toBe(false);
    room();
    expect(left()).toEqual(['1:100 libuv']);
    sender.close();
    expect(sender.sendWithHopLimit(Uint8Array.of(1), HERE, 1, 4)).toBe(false);
    expect(kernel.called.filter((name) => name === 'sendmsg').length).toBe(1);
  });
});
