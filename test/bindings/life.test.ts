/** The lifecycle of a core's connection: the Complete packet, closing, timers, memory. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Core, EventKind, LocalError } from '../../bindings/index.ts';
import { PARAMETERS, Pair } from './pair.ts';
import { content, Reader, Writer } from './traffic.ts';

const text = (value: string) => new TextEncoder().encode(value);

describe('the Complete packet', () => {
  test('is sent first, unchanged, until it is acknowledged', () => {
    const pair = new Pair({ complete: 700 });
    pair.initiator.record = true;
    let lost = 0;
    pair.intercept = (datagram) => {
      if (datagram[0] === 0x83 && lost < 3) {
        lost++;
        return null;
      }
      return datagram;
    };
    pair.initiator.connection.messages.send(text('early'));
    expect(pair.run(20_000, () => pair.initiator.kinds().includes(EventKind.COMPLETED))).toBe(true);
    const repeats = pair.initiator.sent.filter((datagram) => datagram[0] === 0x83);
    expect(pair.initiator.sent[0]).toEqual(new Uint8Array(700).fill(0x83));
    expect(repeats.length).toBeGreaterThanOrEqual(4);
    const { sent } = pair.initiator;
    sent.length = 0;
    pair.run(5_000);
    expect(sent.filter((datagram) => datagram[0] === 0x83)).toEqual([]);
  });

  test('is repeated once, by the probe timeout, however many later packets are acknowledged', () => {
    const pair = new Pair({ complete: 700 });
    pair.initiator.record = true;
    let lost = 0;
    pair.intercept = (datagram) => (datagram[0] === 0x83 && lost++ === 0 ? null : datagram);
    for (let i = 0; i < 8; i++) {
      pair.initiator.connection.messages.send(text('early'));
      pair.run(1);
    }
    expect(pair.run(5_000, () => pair.initiator.kinds().includes(EventKind.COMPLETED))).toBe(true);
    expect(pair.initiator.sent.filter((datagram) => datagram[0] === 0x83)).toHaveLength(2);
    expect(pair.initiator.connection.stats().packetsLost).toBe(0);
  });

  test('carries the Route header like every other packet', () => {
    const pair = new Pair({ complete: 100 });
    pair.initiator.record = true;
    pair.initiator.connection.paths.setRoute(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8));
    pair.intercept = (datagram, from) => (from.isInitiator ? datagram.slice(9) : datagram);
    const id = pair.initiator.connection.streams.open();
    const reader = new Reader(pair.responder);
    const writer = new Writer(pair.initiator, id, 50_000);
    pair.initiator.onEvent = (event) => writer.on(event);
    pair.responder.onEvent = (event) => reader.on(event);
    expect(pair.run(20_000, () => reader.ended.has(id))).toBe(true);
    for (const datagram of pair.initiator.sent) {
      expect([...datagram.subarray(0, 9)]).toEqual([0x88, 1, 2, 3, 4, 5, 6, 7, 8]);
      expect(datagram.length).toBeLessThanOrEqual(1_200);
    }
    expect(Math.max(...pair.initiator.sent.map(({ length }) => length))).toBe(1_200);
  });

  test('is refused when too long, as is a key of the wrong length', () => {
    const options = { initiator: { complete: new Uint8Array(1_001) } };
    expect(() => new Pair(options)).toThrowError(LocalError);
    expect(() => new Pair({ initiator: { sendKey: new Uint8Array(31) } })).toThrowError(/32 bytes/);
  });
});

describe('closing', () => {
  test('sends code and reason to the peer; both ends drain', () => {
    const pair = new Pair();
    pair.initiator.connection.close(4_242, text('enough'), pair.now);
    pair.run(10_000);
    expect(pair.responder.events).toEqual([
      { kind: EventKind.CLOSED, stream: 0, value: 4_242 },
      { kind: EventKind.DRAINED, stream: 0, value: 0 },
    ]);
    expect(new TextDecoder().decode(pair.responder.connection.closeReason())).toBe('enough');
    expect(pair.initiator.kinds()).toEqual([EventKind.CLOSED, EventKind.DRAINED]);
    expect(pair.initiator.connection.streams.open()).toBe(-1);
    expect(pair.initiator.connection.messages.send(text('late'))).toBe(-1);
  });

  test('repeats a lost CONNECTION_CLOSE, ever more rarely, for packets that still arrive', () => {
    const pair = new Pair();
    const { initiator, responder } = pair;
    const id = responder.connection.messages.send(text('x'));
    expect(id).toBeGreaterThan(0);
    pair.intercept = (datagram, from) => (from === initiator ? null : datagram);
    initiator.record = true;
    initiator.connection.close(1, new Uint8Array(), pair.now);
    pair.run(100);
    for (let i = 0; i < 30; i++) {
      responder.connection.ping();
      pair.run(15);
    }
    expect(initiator.sent.length).toBeGreaterThanOrEqual(4);
    expect(initiator.sent.length).toBeLessThanOrEqual(7);
  });

  test('acknowledges what arrived before: a stream that had ended is not cut off', () => {
    const pair = new Pair();
    const [near, far] = [pair.initiator.connection, pair.responder.connection];
    const id = near.streams.open();
    near.streams.write(id, text('all of it'));
    near.streams.finish(id);
    pair.responder.onEvent = ({ kind, stream }) => {
      if (kind !== EventKind.STREAM_READABLE) return;
      const target = new Uint8Array(100);
      expect(far.streams.read(stream, target)).toBe(9);
      expect(far.streams.read(stream, target)).toBe(-1);
      far.close(0, new Uint8Array(0), pair.now);
    };
    pair.run(1_000);
    const kinds = pair.initiator.kinds();
    expect(kinds.indexOf(EventKind.STREAM_FINISHED)).toBeGreaterThanOrEqual(0);
    expect(kinds.indexOf(EventKind.STREAM_FINISHED)).toBeLessThan(kinds.indexOf(EventKind.CLOSED));
  });

  test('leaves received data readable', () => {
    const pair = new Pair();
    const id = pair.initiator.connection.streams.open();
    pair.initiator.connection.streams.write(id, content(id, 0, 5_000));
    pair.run(100);
    pair.initiator.connection.close(0, new Uint8Array(), pair.now);
    pair.run(5_000);
    expect(pair.responder.connection.streams.read(id, new Uint8Array(9_000))).toBe(5_000);
  });
});

describe('timers', () => {
  test('idle: both ends end silently after the smaller timeout', () => {
    const pair = new Pair({
      initiator: { local: { ...PARAMETERS, idleTimeout: 5_000 } },
      responder: { remote: { ...PARAMETERS, idleTimeout: 5_000 } },
    });
    pair.initiator.connection.ping();
    pair.run(4_900);
    expect(pair.initiator.events).toEqual([]);
    pair.run(300);
    for (const end of pair.ends) expect(end.kinds()).toEqual([EventKind.TIMED_OUT, EventKind.DRAINED]);
    expect(pair.initiator.connection.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  });

  test('keep-alive holds the connection open over hours', () => {
    const keepAlive = { interval: 25_000, retryInterval: 2_000, maxRetries: 15 };
    const pair = new Pair({ initiator: { keepAlive } });
    pair.initiator.record = true;
    pair.run(24 * 3_600_000);
    expect(pair.initiator.kinds().filter((kind) => kind !== EventKind.KEY_UPDATED)).toEqual([]);
    const hours = (pair.now - 1_000) / 3_600_000;
    expect(pair.initiator.sent.length / hours).toBeGreaterThan(140);
    expect(pair.initiator.sent.length / hours).toBeLessThan(160);
  });

  test('keep-alive detects a silent peer after interval and retries, without back-off', () => {
    const pair = new Pair({ parameters: { idleTimeout: 0 } });
    pair.initiator.connection.ping();
    pair.run(1_000);
    pair.initiator.connection.setKeepAlive({ interval: 10_000, retryInterval: 2_000, maxRetries: 5 }, pair.now);
    const start = pair.now;
    pair.intercept = () => null;
    pair.run(60_000, () => pair.initiator.kinds().includes(EventKind.DRAINED));
    const kinds = pair.initiator.kinds();
    expect(kinds[0]).toBe(EventKind.PATH_SUSPECTED);
    expect(kinds.filter((kind) => kind !== EventKind.PATH_SUSPECTED)).toEqual([EventKind.TIMED_OUT, EventKind.DRAINED]);
    expect(pair.now - start).toBeCloseTo(20_000, -2);
  });

  test('a transfer survives an outage', () => {
    const pair = new Pair({ seed: 6 });
    const id = pair.initiator.connection.streams.open();
    const writer = new Writer(pair.initiator, id, 400_000);
    const reader = new Reader(pair.responder);
    pair.initiator.onEvent = (event) => writer.on(event);
    pair.responder.onEvent = (event) => reader.on(event);
    pair.run(60);
    pair.intercept = () => null;
    pair.run(15_000);
    pair.intercept = (datagram) => datagram;
    expect(pair.run(60_000, () => reader.ended.has(id))).toBe(true);
    expect(reader.wrong).toBe(0);
  });

  test('acknowledgements come every tenth packet in a bulk transfer, and at most 25 ms late', () => {
    const pair = new Pair({ link: { delay: 5 } });
    const id = pair.initiator.connection.streams.open();
    const writer = new Writer(pair.initiator, id, 3_000_000);
    const reader = new Reader(pair.responder);
    pair.initiator.onEvent = (event) => writer.on(event);
    pair.responder.onEvent = (event) => reader.on(event);
    pair.run(60_000, () => reader.ended.has(id));
    const { packetsSent } = pair.responder.connection.stats();
    expect(packetsSent / pair.initiator.connection.stats().packetsSent).toBeLessThan(0.15);
    const before = pair.now;
    pair.run(1_000, () => writer.finished);
    expect(pair.now - before).toBeLessThan(5 + 25 + 5 + 1);
  });
});

describe('memory', () => {
  test('never grows, and every allocation is freed', { tags: ['slow'] }, () => {
    const core = Core.create();
    let top = 0;
    for (let round = 0; round < 4; round++) {
      const pair = new Pair({ core, seed: round, link: { loss: 0.02, jitter: 3 } });
      const id = pair.initiator.connection.streams.open();
      const writer = new Writer(pair.initiator, id, 1_000_000);
      const reader = new Reader(pair.responder);
      pair.initiator.onEvent = (event) => writer.on(event);
      pair.responder.onEvent = (event) => reader.on(event);
      expect(pair.run(600_000, () => reader.ended.has(id))).toBe(true);
      pair.free();
      const stats = core.stats();
      expect(stats).toMatchObject({ connections: 0, byteStreams: 0, freeSlots: pair.core.packetSlots });
      expect(core.buffer.length).toBe(stats.memory);
      top = Math.max(top, stats.heapTop);
    }
    expect(core.stats().heapTop).toBe(top);
    expect(core.stats().freeChunks * 1_024 + core.stats().heapTop).toBeGreaterThan(core.stats().memory - 1_024);
  });

  test('of an idle connection is 1,536 bytes and no chunk', { tags: ['slow'] }, () => {
    const core = Core.create({ connections: 1_000 });
    const before = core.stats();
    const pairs = Array.from({ length: 50 }, () => new Pair({ core, complete: 300 }));
    for (const pair of pairs) {
      pair.initiator.connection.messages.send(content(0, 0, 2_000));
      pair.responder.onEvent = ({ kind, stream }, { connection }) => {
        if (kind === EventKind.MESSAGE) connection.messages.read(stream);
      };
      pair.run(5_000);
    }
    const after = core.stats();
    expect(after.freeChunks).toBe(before.freeChunks);
    expect(after.connections).toBe(100);
    for (const pair of pairs) pair.free();
  });

  test('without a free slot refuses a connection', () => {
    const core = Core.create({ connections: 2 });
    const pair = new Pair({ core });
    expect(() => new Pair({ core })).toThrowError(expect.objectContaining({ code: 'OUT_OF_MEMORY' }));
    pair.free();
    new Pair({ core }).free();
    expect(() => Core.create({ memory: 500_000 })).toThrowError(expect.objectContaining({ code: 'OUT_OF_MEMORY' }));
    expect(() => Core.create({ maxPacketSize: 100 })).toThrowError(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  test('without enough for the core refuses it, and says how much it wants', () => {
    expect(() => Core.create({ memory: 2 ** 40 })).toThrowError(
      expect.objectContaining({
        code: 'OUT_OF_MEMORY',
        message: expect.stringMatching(/^there are no 1099511627776 bytes of memory for the core: /),
      }),
    );
  });

  test('without address space names its limit', () => {
    class Refused {
      constructor() {
        throw new RangeError('WebAssembly.Instance(): Out of memory: Cannot allocate Wasm memory for new instance');
      }
    }
    const refused = vi.spyOn(WebAssembly, 'Instance').mockImplementation(Refused as never);
    onTestFinished(() => refused.mockRestore());
    expect(() => Core.create()).toThrowError(
      expect.objectContaining({ code: 'OUT_OF_MEMORY', message: expect.stringMatching(/10 GiB of address space.*ulimit -v/) }),
    );
  });

  test('of packets that are not released is not reused', () => {
    const pair = new Pair();
    const { connection } = pair.initiator;
    const id = connection.streams.open();
    connection.streams.write(id, content(id, 0, 60_000));
    let held = 0;
    for (let count = connection.transmit(pair.now, 4); count > 0; count = connection.transmit(pair.now, 4)) held += count;
    expect(pair.core.stats().freeSlots).toBe(128 - held);
    pair.core.release(pair.core.packetOffsets[0] as number);
    expect(pair.core.stats().freeSlots).toBe(128 - held + 1);
    pair.core.release(0);
    expect(pair.core.stats().freeSlots).toBe(128 - held + 1);
  });
});

describe('a trap', () => {
  test('ends the core and nothing else', async () => {
    const pair = new Pair();
    const other = new Pair();
    const failure = expect.objectContaining({ code: 'CORE_FAILED', message: expect.stringMatching(/\d+:\d+/) });
    expect(() => pair.core.failForTest()).toThrowError(failure);
    expect(pair.core.failed).toBe(true);
    const { connection } = pair.initiator;
    const calls = [
      () => connection.receive(new Uint8Array(50), 0, 0),
      () => connection.transmit(0),
      () => connection.nextTimeout(),
      () => connection.nextEvent(),
      () => connection.streams.open(),
      () => connection.messages.send(new Uint8Array(1)),
      () => pair.core.stats(),
      () => new Pair({ core: pair.core }),
    ];
    for (const call of calls) expect(call).toThrowError(failure);
    connection.free();
    pair.core.release(0);
    expect(other.run(100)).toBe(false);
    expect(other.core.failed).toBe(false);
  });

  test('is avoided: a freed handle is refused before it reaches the core', () => {
    const pair = new Pair();
    pair.free();
    pair.free();
    expect(() => pair.initiator.connection.transmit(0)).toThrowError(expect.objectContaining({ code: 'INVALID_STATE' }));
    expect(pair.core.failed).toBe(false);
  });
});

describe('loading', () => {
  test('takes bytes (also of another context), a module, a response and the package itself', async () => {
    const { readFileSync } = await import('node:fs');
    const bytes = readFileSync(new URL('../../dist/core.wasm', import.meta.url));
    const module = await WebAssembly.compile(bytes);
    const response = new Response(bytes, { headers: { 'content-type': 'application/wasm' } });
    const { runInNewContext } = await import('node:vm');
    const elsewhere = runInNewContext('(bytes) => new Uint8Array(bytes).buffer')(bytes) as ArrayBuffer;
    expect(elsewhere).not.toBeInstanceOf(ArrayBuffer);
    for (const source of ['embedded', bytes, elsewhere, module, response] as const) {
      const core = await Core.load({ memory: 8_000_000 }, source);
      expect(core.stats().connections).toBe(0);
      expect(core.buffer.length).toBeGreaterThanOrEqual(8_000_000);
    }
    expect(WebAssembly.Module.imports(module)).toEqual([]);
  });

  test('refuses a module of another ABI version', async () => {
    // (module (func (export "abiVersion") (result i32) i32.const 99))
    const other = Uint8Array.of(
      0,
      97,
      115,
      109,
      1,
      0,
      0,
      0,
      1,
      5,
      1,
      96,
      0,
      1,
      127,
      3,
      2,
      1,
      0,
      7,
      14,
      1,
      10,
      ...text('abiVersion'),
      0,
      0,
      10,
      7,
      1,
      5,
      0,
      65,
      227,
      0,
      11,
    );
    await expect(Core.load({}, other)).rejects.toThrowError(/ABI version 99/);
    await expect(Core.load({}, Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 9, 9))).rejects.toThrowError(/SIMD/);
  });
});
