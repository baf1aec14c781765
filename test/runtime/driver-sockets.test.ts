/** Several sockets of one driver, some of another kind than UDP: separate queues, adding and removing. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Path } from '../../protocol/path.ts';
import type { Driver } from '../../runtime/driver.ts';
import { Bench, SLOTS } from './driver-bench.ts';
import { StallableSocket } from './stallable-socket.ts';

/** The share that one of two sockets may have of the engine's packets: a quarter stays for the other. */
const SHARE = (3 / 4) * SLOTS;
/** Largest number of forwarded datagrams in a socket; a batch of the engine fits beside them. */
const MAX_FORWARDED = 224;

/** A path of a kind that has no addresses. */
const channelPaths: readonly Path[] = Array.from({ length: 64 }, (_, socket) => {
  return { kind: 'datachannel', key: `datachannel:${socket}`, address: '', port: 0, socket, local: false };
});

function channelPath(socket: number): Path {
  return channelPaths[socket]!;
}

/** A driver with sockets that release their packets within a turn, unless they are stalled. */
class Sockets {
  readonly bench = new Bench();
  readonly driver: Driver<string>;

  constructor() {
    this.driver = this.bench.driver();
  }

  add(index: number, inCommon = false): StallableSocket {
    const { bench } = this;
    const carrier = {
      send: (_buffer: Uint8Array, offset: number, _length: number, _path: Path, released: (offset: number) => void) =>
        void bench.deferred.push(() => released(offset)),
      close: () => void bench.closed.push(index),
    };
    const socket = new StallableSocket(index, carrier, bench.clock.defer);
    this.driver.add(socket, inCommon);
    return socket;
  }

  /** Makes the engine send on a path, and runs the turns that takes. */
  async transmit(count: number, path: Path): Promise<void> {
    this.bench.engine.order(count, path);
    this.driver.wake();
    await this.bench.turns();
  }
}

let sockets: Sockets;
beforeEach(() => {
  sockets = new Sockets();
});

/** Adds two sockets, of which the first is stalled. */
function stalledOfTwo(): StallableSocket {
  const stalled = sockets.add(0);
  sockets.add(1);
  stalled.stalled = true;
  return stalled;
}

describe('queue of a socket', () => {
  it('that stalls does not delay the others', async () => {
    const stalled = stalledOfTwo();
    await sockets.transmit(1000, channelPath(0));
    expect(stalled.held).toBe(SHARE);
    await sockets.transmit(1000, channelPath(1));
    expect(sockets.driver.stats).toMatchObject({ sent: SHARE + 1000, dropped: 0 });
    expect(sockets.bench.engine.released).toHaveLength(1000);
  });

  it.each([2, 3, 5])('leaves packets for the last of %i sockets when all others stall', async (count) => {
    const others = Array.from({ length: count - 1 }, (_, i) => sockets.add(i));
    sockets.add(count - 1);
    for (const [i, other] of others.entries()) {
      other.stalled = true;
      await sockets.transmit(1000, channelPath(i));
    }
    expect(others.reduce((held, other) => held + other.held, 0)).toBeLessThanOrEqual(SHARE);
    await sockets.transmit(1000, channelPath(count - 1));
    expect(sockets.bench.engine.released).toHaveLength(1000);
  });

  it('has all packets of the engine while the socket is the only one', async () => {
    const only = sockets.add(0);
    only.stalled = true;
    await sockets.transmit(1000, channelPath(0));
    expect(only.held).toBe(SLOTS);
    only.resume();
    await sockets.bench.turns();
    expect([sockets.driver.stats.sent, sockets.bench.engine.released.length]).toEqual([1000, 1000]);
  });

  it('accepts packets again when half of them have left, and loses none', async () => {
    const slow = stalledOfTwo();
    await sockets.transmit(500, channelPath(0));
    expect(slow.held).toBe(SHARE);
    slow.resume();
    await sockets.bench.turns();
    expect(sockets.driver.stats).toMatchObject({ sent: 500, dropped: 0 });
    expect(sockets.bench.engine.released).toHaveLength(500);
  });

  it('refuses forwarded datagrams when it is full, the other takes them', () => {
    stalledOfTwo();
    for (let i = 0; i < MAX_FORWARDED; i++) expect(sockets.driver.send(new Uint8Array(1), channelPath(0))).toBe(true);
    expect(sockets.driver.send(new Uint8Array(1), channelPath(0))).toBe(false);
    expect(sockets.driver.send(new Uint8Array(1), channelPath(1))).toBe(true);
    expect(sockets.driver.stats).toMatchObject({ sent: MAX_FORWARDED + 1, dropped: 1 });
  });

  it('that accepts no further forwarded datagrams still takes packets of the engine', async () => {
    stalledOfTwo();
    for (let i = 0; i < MAX_FORWARDED; i++) sockets.driver.send(new Uint8Array(1), channelPath(0));
    await sockets.transmit(5, channelPath(0));
    await sockets.transmit(5, channelPath(1));
    expect(sockets.driver.stats).toMatchObject({ sent: MAX_FORWARDED + 10, dropped: 0 });
  });

  it('that is full drops packets that the engine creates regardless, and releases them at once', async () => {
    const stalled = stalledOfTwo();
    await sockets.transmit(SHARE, channelPath(0));
    sockets.bench.engine.heedless = true;
    await sockets.transmit(20, channelPath(0));
    expect(sockets.driver.stats).toMatchObject({ sent: SHARE, dropped: 20 });
    expect([stalled.held, sockets.bench.engine.released.length]).toEqual([SHARE, 20]);
  });
});

describe('sockets with a shared limit', () => {
  /** A socket with its own limit, and others that are stalled. */
  function withCommon(count: number): { sockets: Sockets; own: StallableSocket; common: StallableSocket[] } {
    const sockets = new Sockets();
    const own = sockets.add(0);
    const common = Array.from({ length: count }, (_, i) => sockets.add(i + 1, true));
    for (const each of common) each.stalled = true;
    return { sockets, own, common };
  }
  const held = (common: readonly StallableSocket[]): number => common.reduce((sum, each) => sum + each.held, 0);

  it.each([1, 11, 51])('leave the shares of the others: %i of them', async (count) => {
    const { sockets, own } = withCommon(count);
    own.stalled = true;
    await sockets.transmit(1000, channelPath(0));
    expect(own.held).toBe(SHARE);
  });

  it('have no more than one socket, together, and each of them all of that', async () => {
    for (const count of [1, 51]) {
      const { sockets, common } = withCommon(count);
      for (let i = 1; i <= count; i++) await sockets.transmit(1000, channelPath(i));
      expect([common[0]!.held, held(common)]).toEqual([SHARE, SHARE]);
      await sockets.transmit(1000, channelPath(0));
      expect(sockets.bench.engine.released).toHaveLength(1000);
    }
  });

  it('drop packets that the engine creates regardless when the limit is reached', async () => {
    const { sockets, common } = withCommon(2);
    await sockets.transmit(SHARE, channelPath(1));
    sockets.bench.engine.heedless = true;
    for (const index of [1, 2]) await sockets.transmit(5, channelPath(index));
    expect([held(common), sockets.driver.stats.dropped]).toEqual([SHARE, 10]);
  });

  it.each(['sends again', 'is removed'])('accept packets again when one of them that stalled %s', async (what) => {
    const { sockets, common } = withCommon(2);
    const [slow, quick] = common as [StallableSocket, StallableSocket];
    await sockets.transmit(SHARE / 2 + 4, channelPath(1));
    await sockets.transmit(1000, channelPath(2));
    quick.resume();
    await sockets.bench.turns();
    // The slow one holds more than half.
    expect([slow.held, quick.held]).toEqual([SHARE / 2 + 4, 0]);
    expect(sockets.driver.stats.sent).toBe(SHARE);
    if (what === 'is removed') sockets.driver.remove(slow);
    else slow.resume();
    await sockets.bench.turns();
    expect(sockets.driver.stats).toMatchObject({ sent: SHARE / 2 + 4 + 1000, dropped: 0 });
    expect(sockets.bench.engine.released).toHaveLength(SHARE / 2 + 4 + 1000);
  });
});

describe('a datagram with a hop limit', () => {
  it('goes to the socket with it, counts as sent, and does not delay a close', async () => {
    const socket = sockets.add(0);
    const sent: number[] = [];
    Object.assign(socket, {
      sendWithHopLimit: (datagram: Uint8Array, path: Path, hopLimit: number) => sent.push(datagram[0]!, path.socket, hopLimit),
    });
    expect(sockets.driver.send(Uint8Array.of(7), channelPath(0), 4)).toBe(true);
    expect(sent).toEqual([7, 0, 4]);
    expect(sockets.driver.stats).toMatchObject({ sent: 1, dropped: 0 });
    const closed = sockets.driver.close();
    await sockets.bench.turns();
    await closed;
  });

  it('is dropped and counted where the socket has no support, where it is full, and without a socket', () => {
    const socket = sockets.add(0);
    expect(sockets.driver.send(new Uint8Array(1), channelPath(0), 4)).toBe(false);
    Object.assign(socket, { sendWithHopLimit: () => expect.unreachable() });
    socket.stalled = true;
    for (let i = 0; i < MAX_FORWARDED; i++) sockets.driver.send(new Uint8Array(1), channelPath(0));
    expect(sockets.driver.send(new Uint8Array(1), channelPath(0), 4)).toBe(false);
    expect(sockets.driver.send(new Uint8Array(1), channelPath(1), 4)).toBe(false);
    expect(sockets.driver.stats).toMatchObject({ sent: MAX_FORWARDED, dropped: 3 });
  });
});

describe('add', () => {
  it('accepts a socket of another kind: its datagrams reach the engine, and packets leave by it', async () => {
    sockets.add(7);
    sockets.driver.receive(Uint8Array.of(9), channelPath(7));
    await sockets.transmit(3, channelPath(7));
    expect(sockets.bench.engine.calls[0]).toBe('receive 9 at 100');
    expect(sockets.driver.stats).toMatchObject({ received: 1, sent: 3, dropped: 0 });
  });

  it('ignores a socket that the driver has, and refuses another with its index', () => {
    const socket = sockets.add(0);
    sockets.driver.add(socket);
    expect(sockets.driver.sockets).toEqual([socket]);
    expect(() => sockets.add(0)).toThrow('another socket has the index 0');
    expect([sockets.driver.sockets, sockets.bench.closed]).toEqual([[socket], []]);
  });

  it.each(['closes', 'is closed'])('closes the socket at once when the driver %s', async (state) => {
    const closing = sockets.driver.close();
    if (state === 'is closed') {
      await sockets.bench.turns();
      await closing;
    }
    const late = sockets.add(0);
    expect([late.closed, sockets.driver.sockets]).toEqual([1, []]);
  });
});

describe('remove', () => {
  it('releases the packets in the queue, and lets the engine create others', async () => {
    const stalled = sockets.add(0);
    const other = sockets.add(1);
    stalled.stalled = true;
    await sockets.transmit(SHARE, channelPath(0));
    for (let i = 0; i < 100; i++) sockets.driver.send(new Uint8Array(1), channelPath(0));
    sockets.driver.remove(stalled);
    await sockets.bench.turns();
    expect([stalled.closed, stalled.held, sockets.driver.sockets]).toEqual([1, 0, [other]]);
    expect(sockets.bench.engine.released).toHaveLength(SHARE);
    // The one that is left has all of the engine's packets.
    other.stalled = true;
    await sockets.transmit(1000, channelPath(1));
    expect(other.held).toBe(SLOTS);
  });

  it('of a full one drops its queue', async () => {
    const stalled = stalledOfTwo();
    await sockets.transmit(1000, channelPath(0));
    sockets.driver.remove(stalled);
    await sockets.bench.turns();
    expect(sockets.driver.stats).toMatchObject({ sent: SHARE, dropped: 1000 - SHARE });
    expect(sockets.bench.engine.released).toHaveLength(1000);
    expect(sockets.driver.send(new Uint8Array(1), channelPath(0))).toBe(false);
  });

  it('has no effect twice, for a socket of another driver, and after close', async () => {
    const socket = sockets.add(0);
    const stranger = new StallableSocket(0, { send: () => {}, close: () => {} }, sockets.bench.clock.defer);
    sockets.driver.remove(stranger);
    expect([stranger.closed, sockets.driver.sockets]).toEqual([0, [socket]]);
    sockets.driver.remove(socket);
    sockets.driver.remove(socket);
    expect([socket.closed, sockets.driver.sockets]).toEqual([1, []]);
    void sockets.driver.close();
    await sockets.bench.turns();
    sockets.driver.remove(socket);
    expect(socket.closed).toBe(1);
  });

  it.each(['receive', 'intercept', 'event'])('may be called within %s', async (place) => {
    const bench = new Bench();
    const at = (here: string): void => {
      if (here === place) driver.remove(socket);
    };
    const driver: Driver<string> = bench.driver({ onEvent: () => at('event') });
    driver.intercept(() => {
      at('intercept');
      return false;
    });
    const receive = bench.engine.receive.bind(bench.engine);
    bench.engine.receive = (datagram, path, now) => {
      at('receive');
      receive(datagram, path, now);
    };
    const socket = new StallableSocket(0, { send: () => {}, close: () => void bench.closed.push(0) }, bench.clock.defer);
    driver.add(socket);
    bench.engine.events = ['event'];
    bench.engine.order(3, channelPath(0));
    driver.receive(Uint8Array.of(1), channelPath(0));
    await bench.turns();
    expect([bench.closed, driver.sockets, driver.stats]).toEqual([[0], [], { received: 1, sent: 0, dropped: 3, failures: 0 }]);
    expect(bench.engine.released).toHaveLength(3);
  });

  it('of the last socket lets a driver close that waited for it', async () => {
    const stalled = sockets.add(0);
    stalled.stalled = true;
    await sockets.transmit(10, channelPath(0));
    let done = false;
    const closing = sockets.driver.close().then(() => {
      done = true;
    });
    await sockets.bench.turns();
    expect(done).toBe(false);
    sockets.driver.remove(stalled);
    await sockets.bench.turns();
    await closing;
    expect(sockets.bench.engine.released).toHaveLength(10);
  });
});

/** A socket with a limit in bytes, like a WebSocket: it holds its packets, and has capacity until it has `bound`. */
class BoundedSocket extends StallableSocket {
  bound = 10;
  override stalled = true;

  get room(): number {
    return Math.max(0, this.bound - this.held);
  }
}

describe('a socket that reports its capacity', () => {
  const bounded = (): { sockets: Sockets; socket: BoundedSocket } => {
    const sockets = new Sockets();
    const { bench } = sockets;
    const carrier = {
      send: (_buffer: Uint8Array, offset: number, _length: number, _path: Path, released: (offset: number) => void) =>
        void bench.deferred.push(() => released(offset)),
      close: () => {},
    };
    const socket = new BoundedSocket(0, carrier, bench.clock.defer);
    sockets.driver.add(socket);
    sockets.add(1);
    return { sockets, socket };
  };

  it('gets no more packets than that, and is asked again when some have left', async () => {
    const { sockets, socket } = bounded();
    await sockets.transmit(25, channelPath(0));
    expect(socket.held).toBe(10);
    socket.leave(4);
    await sockets.bench.turns();
    expect(socket.held).toBe(10);
    socket.leave(10);
    await sockets.bench.turns();
    expect([socket.held, sockets.driver.stats.sent, sockets.driver.stats.dropped]).toEqual([10, 24, 0]);
    await sockets.transmit(100, channelPath(1));
    expect(sockets.driver.stats.sent).toBe(124);
  });

  it('is asked again also when its capacity has shrunk in between, and accepts no forwarded datagram without capacity', async () => {
    const { sockets, socket } = bounded();
    await sockets.transmit(5, channelPath(0));
    socket.bound = 5;
    expect(sockets.driver.send(new Uint8Array(10), channelPath(0))).toBe(false);
    await sockets.transmit(1, channelPath(0));
    expect(socket.held).toBe(5);
    socket.leave(1);
    await sockets.bench.turns();
    expect([socket.held, sockets.driver.stats.sent]).toEqual([5, 6]);
  });
});
