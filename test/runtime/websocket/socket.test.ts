/** WebSockets as sockets for datagrams, over a pipe that a test drains and in time that a test advances. */
import { describe, expect, it } from 'vitest';
import { RemoteError, type SvcError } from '../../../protocol/errors/index.ts';
import { SharedQueue, WebSocketCut, WebSocketSocket, type WebSocketSocketOptions } from '../../../runtime/websocket/index.ts';
import { FakeClock, FakePipe } from './fake-pipe.ts';

const SIZE = 1_452;
const BOUND = 65_536;
const ROUTED = 0x88;
const OWN = 0xc0;

class Scene {
  readonly pipe = new FakePipe();
  readonly clock = new FakeClock();
  readonly received: Uint8Array[] = [];
  readonly errors: SvcError[] = [];
  readonly released: number[] = [];
  readonly socket: WebSocketSocket;

  constructor(options: Partial<WebSocketSocketOptions> = {}) {
    this.socket = new WebSocketSocket(this.pipe, {
      clock: this.clock,
      receive: (datagram) => void this.received.push(datagram),
      closed: (error) => void this.errors.push(error),
      ...options,
    });
  }

  /** Sends a packet that begins with `type` and ends with `mark`. */
  send(mark: number, { type = OWN, length = SIZE } = {}): Uint8Array {
    const packet = new Uint8Array(length);
    packet[0] = type;
    packet[length - 1] = mark;
    this.socket.send(packet, 0, length, this.socket.path, () => void this.released.push(mark));
    return packet;
  }

  /** Marks of the packets that the pipe received. */
  get marks(): (number | undefined)[] {
    return this.pipe.messages.map((message) => message.at(-1));
  }

  /** Sends and drains at this many bytes a millisecond, for this time. */
  flow(rate: number, time: number): void {
    for (const end = this.clock.time + time; this.clock.time < end; this.clock.time++) {
      while (this.pipe.held * SIZE < 2 * rate) this.send(0);
      this.pipe.leave(Math.round(rate / SIZE));
    }
  }
}

/** A socket with that many packets, of which the pipe lets none leave. */
function sent(queue: SharedQueue, packets: number): Scene {
  const scene = new Scene({ queue });
  for (let i = 0; i < packets; i++) scene.send(i);
  return scene;
}

describe('a WebSocket', () => {
  it('has one path, which is never local', () => {
    const { path, index } = new Scene().socket;
    expect(path).toMatchObject({
      kind: 'websocket',
      key: 'websocket:7:192.0.2.1:443',
      socket: index,
      local: false,
      address: '192.0.2.1',
      port: 443,
    });
    const behindProxy = new Scene({ peer: { address: '2001:db8::1', port: 0 } }).socket.path;
    expect(behindProxy).toMatchObject({ key: 'websocket:7:[2001:db8::1]:0', address: '2001:db8::1' });
  });

  it('passes on arrivals, drops and counts a message without bytes, and ends at one of 65,536', () => {
    const { socket, received, errors, pipe } = new Scene();
    for (const length of [1, 0, 65_535]) socket.deliver(new Uint8Array(length));
    expect([received.map(({ length }) => length), socket.malformed, errors]).toEqual([[1, 65_535], 1, []]);
    for (const length of [65_536, 5]) socket.deliver(new Uint8Array(length));
    expect([received.length, socket.malformed, pipe.closes, errors.map(({ code }) => code)]).toEqual([2, 2, [1009], ['BAD_RESPONSE']]);
  });

  it("delivers nothing once it is closed, with its owner's code, and emits nothing", () => {
    const { socket, received, errors, pipe } = new Scene({ closeCode: 1001 });
    socket.close();
    socket.deliver(new Uint8Array(5));
    socket.ended({ code: 'CLOSED' } as SvcError);
    expect([pipe.closes, received, errors]).toEqual([[1001], [], []]);
  });
});

describe('without a queue', () => {
  it('releases each packet when it has left, and lends it until then', () => {
    const scene = new Scene();
    const packet = scene.send(1);
    scene.send(2);
    expect([scene.released, scene.pipe.messages[0]!.buffer === packet.buffer]).toEqual([[], true]);
    scene.pipe.leave(1);
    expect(scene.released).toEqual([1]);
    scene.pipe.leave();
    expect([scene.released, scene.socket.queued]).toEqual([[1, 2], 0]);
  });

  it('has a capacity of 64 KiB, and more once half has left', () => {
    const scene = new Scene();
    let sent = 0;
    for (; scene.socket.room > 0; sent++) scene.send(sent);
    expect(sent).toBe(Math.floor(BOUND / SIZE));
    const half = Math.ceil((sent * SIZE - BOUND / 2) / SIZE);
    scene.pipe.leave(half - 1);
    expect(scene.socket.room).toBe(0);
    scene.pipe.leave(1);
    expect(scene.socket.room).toBe(Math.floor((BOUND - (sent - half) * SIZE) / SIZE));
  });

  it('has the capacity of 100 ms of its rate, at most a mebibyte, and 64 KiB again when nothing leaves', () => {
    const scene = new Scene();
    scene.flow(2 * SIZE, 400);
    expect(scene.socket.room * SIZE).toBeGreaterThan(150 * SIZE);
    expect(scene.socket.room * SIZE).toBeLessThan(201 * SIZE);
    scene.flow(40 * SIZE, 400);
    expect(scene.socket.room).toBeGreaterThan(500);
    expect((scene.socket.room + scene.pipe.held) * SIZE).toBeLessThanOrEqual(1 << 20);
    scene.send(1);
    scene.clock.time += 10_000;
    expect(scene.socket.room).toBeLessThanOrEqual(Math.floor(BOUND / SIZE));
  });
});

describe('with a queue', () => {
  it.each([
    ['closed in order, hands over what waits, the last packets of sessions', undefined, 48],
    ['closed for a violation, drops it', 1008, 46],
  ])('%s', (_, code, handed) => {
    const queue = new SharedQueue();
    const { socket, pipe } = sent(queue, 48);
    socket.close(code);
    expect([pipe.messages.length, pipe.closes, queue.bytes]).toEqual([handed, [code ?? 1000], 46 * SIZE]);
  });

  it('copies and releases at once, though never before send has returned, however long it stalls', () => {
    const scene = new Scene({ queue: new SharedQueue() });
    const packets = Array.from({ length: 500 }, (_, mark) => scene.send(mark % 256));
    expect([scene.released.length, scene.socket.room]).toEqual([0, Number.POSITIVE_INFINITY]);
    scene.clock.turn();
    expect(scene.released.length).toBe(500);
    for (const packet of packets) packet.fill(0xff);
    scene.pipe.leave();
    expect(scene.pipe.messages.every((message) => message.at(-1) !== 0xff)).toBe(true);
  });

  it('holds 64 KiB in the pipe and the same behind it, from which the oldest routed packet is dropped first', () => {
    const queue = new SharedQueue();
    const scene = new Scene({ queue });
    const inPipe = Math.ceil(BOUND / SIZE);
    const waiting = Math.floor(BOUND / SIZE);
    for (let i = 0; i < inPipe; i++) scene.send(1);
    for (let i = 0; i < waiting; i++) scene.send(i % 2 === 0 ? 2 : 3, { type: i % 2 === 0 ? OWN : ROUTED });
    expect([scene.pipe.held, queue.dropped]).toEqual([inPipe, 0]);
    scene.send(4, { type: ROUTED });
    scene.send(5);
    expect([queue.dropped, scene.socket.queued]).toEqual([2, (inPipe + waiting) * SIZE]);
    while (scene.pipe.held > 0) scene.pipe.leave();
    const routed = scene.marks.filter((mark) => mark === 3).length;
    // Own packets leave first, and none is lost; of the routed ones the newest is there.
    expect([scene.marks.filter((mark) => mark === 2).length, routed, scene.marks.at(-1)]).toEqual([
      Math.ceil(waiting / 2),
      Math.floor(waiting / 2) - 2,
      4,
    ]);
    expect([scene.marks.includes(5), queue.bytes, scene.socket.queued]).toEqual([true, 0, 0]);
  });

  it('drops the oldest own packet where no routed one waits', () => {
    const queue = new SharedQueue();
    const scene = new Scene({ queue });
    for (let mark = 0; mark < 200; mark++) scene.send(mark);
    while (scene.pipe.held > 0) scene.pipe.leave();
    expect([queue.dropped, scene.marks.length, scene.marks.at(-1)]).toEqual([200 - scene.marks.length, 200 - queue.dropped, 199]);
  });

  it('holds little while all WebSockets together hold too much, and passes every packet as it leaves', () => {
    const queue = new SharedQueue(BOUND);
    const [stalled, other] = [new Scene({ queue }), new Scene({ queue })];
    for (let i = 0; i < 500; i++) stalled.send(1, { type: ROUTED });
    expect(queue.isFull).toBe(true);
    expect(stalled.socket.queued).toBeLessThan(BOUND + 4 * SIZE);
    for (let i = 0; i < 50; i++) {
      other.send(2);
      other.pipe.leave();
    }
    expect([other.marks.length, queue.bytes]).toEqual([50, stalled.socket.queued]);
  });

  it('returns its share of the total when it ends', () => {
    const queue = new SharedQueue();
    const scene = new Scene({ queue });
    for (let i = 0; i < 200; i++) scene.send(1);
    scene.socket.ended({ code: 'CLOSED' } as SvcError);
    scene.pipe.leave();
    scene.clock.turn();
    expect([queue.bytes, scene.released.length, scene.errors.length, scene.pipe.held]).toEqual([0, 200, 1, 0]);
  });
});

describe('the silence before a WebSocket is cut', () => {
  it.each<[string, string, number, number]>([
    ['counts since it opened', '', 10, 10_000],
    ['counts since the last message', 's1 r2 s3', 13, 10_000],
    ['includes the one before a message that met the cut', 's1 r2 s27', 28, 26_000],
    ['does not include the one before a message without an answer in time, and its repetitions', 'r1 s26 s28 s30', 31, 1_000],
    ['is short under traffic', 's1 r2 s3', 4, 1_000],
    ['is not its cause after a longer one, that a message ended', 'r0 s25 r26', 45, 0],
    ['is not its cause after a longer one, that an arrival ended', 's0 r25', 45, 0],
    ['may be its cause after one about as long', 's0 s25 r26', 50, 24_000],
  ])('%s: messages sent and received at the seconds %s, cut at %i', (_, messages, cutAt, silence) => {
    const scene = new Scene();
    for (const message of messages.split(' ').filter(Boolean)) {
      scene.clock.time = Number(message.slice(1)) * 1000;
      if (message.startsWith('s')) scene.send(0);
      else scene.socket.deliver(new Uint8Array(1));
    }
    scene.clock.time = cutAt * 1000;
    scene.socket.ended(new RemoteError('CLOSED', 'ended with 1006'));
    expect(scene.errors).toEqual([new WebSocketCut('ended with 1006', silence)]);
    expect(scene.errors[0]).toMatchObject({ name: 'WebSocketCut', code: 'CLOSED', silence });
  });

  it('is not known when this end cuts it, for a message that is too long', () => {
    const scene = new Scene();
    scene.clock.time = 10_000;
    scene.socket.deliver(new Uint8Array(65_536));
    expect(scene.errors.map(({ name, code }) => `${name} ${code}`)).toEqual(['RemoteError BAD_RESPONSE']);
  });
});
