/** The driver loop over a small engine: order, queues, timers, failures. */
import { describe, expect, it } from 'vitest';
import { Bench, SLOTS } from './driver-bench.ts';

describe('driver', () => {
  it('passes each datagram to the engine at once and services once after them', async () => {
    const { bench, driver } = await Bench.bound();
    for (let i = 0; i < 5; i++) bench.bound[0]!.receive(Uint8Array.of(i), bench.engine.path);
    expect(bench.engine.calls).toEqual([
      'receive 0 at 100',
      'receive 1 at 100',
      'receive 2 at 100',
      'receive 3 at 100',
      'receive 4 at 100',
    ]);
    driver.wake();
    expect(bench.due).toBe(1);
    bench.turn();
    expect(bench.engine.calls.slice(5)).toEqual(['transmit']);
    expect(driver.stats.received).toBe(5);
  });

  it('answers a lone datagram before the socket is asked for the next', async () => {
    const bench = new Bench();
    const driver = bench.driver({
      onEvent: () => {
        bench.engine.toSend = 1;
        driver.wake();
      },
    });
    await driver.bind({ port: 0 });
    for (const byte of [1, 2]) {
      bench.time += 1;
      bench.engine.events = ['question'];
      bench.bound[0]!.receive(Uint8Array.of(byte), bench.engine.path);
      expect([bench.engine.events, bench.engine.toSend]).toEqual([[], 1]);
      bench.settle();
      expect(driver.stats.sent).toBe(byte);
    }
    expect(bench.deferred).toEqual([]);
  });

  it('sends the response to an event after emitting it, together with the packets of the event itself', async () => {
    const bench = new Bench();
    const driver = bench.driver({
      onEvent: () => {
        bench.engine.toSend = 1;
        void Promise.resolve().then(() => {
          bench.engine.toSend = 2;
          driver.wake();
        });
      },
    });
    await driver.bind({ port: 0 });
    // A platform's clock runs `soon` callbacks after the promises.
    bench.clock.soon = (run) => void setImmediate(run);
    const served = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(() => setImmediate(resolve))));
    for (const cause of ['timeout', 'batch']) {
      bench.engine.events = [cause];
      if (cause === 'timeout') driver.wake();
      else for (const byte of [1, 2]) bench.bound[0]!.receive(Uint8Array.of(byte), bench.engine.path);
      bench.turn();
      await served();
      expect(bench.inFlight.splice(0)).toHaveLength(2);
      expect(bench.engine.calls.splice(0).filter((call) => call === 'transmit')).toHaveLength(2);
    }
  });

  it('checks every 16 services whether datagrams come in batches, and then serves each batch together, however far apart they are', async () => {
    const { bench } = await Bench.bound();
    /** Number of events emitted after this many further datagrams. */
    const arrive = (count: number): number => {
      for (let i = 0; i < count; i++) {
        bench.time += 50;
        bench.engine.events.push('arrived');
        bench.bound[0]!.receive(Uint8Array.of(0), bench.engine.path);
        bench.settle();
      }
      return bench.events.length;
    };
    expect(arrive(16)).toBe(16);
    expect(arrive(4)).toBe(16);
    const services = () => bench.engine.calls.filter((call) => call === 'transmit').length;
    expect(services()).toBe(16);
    bench.turn();
    expect([bench.events.length, services()]).toEqual([20, 17]);
    // After several datagrams it expects more, until there was only one: then it checks again after 1, 2, 4 … 16
    // services.
    let emitted = arrive(1);
    expect(emitted).toBe(20);
    bench.turn();
    for (const atOnce of [1, 2, 4, 8, 16, 16]) {
      emitted = bench.events.length;
      expect(arrive(atOnce + 1)).toBe(emitted + atOnce);
      bench.turn();
      expect(bench.events).toHaveLength(emitted + atOnce + 1);
    }
  });

  it('emits the events of a large batch after every 32 datagrams, before its service', async () => {
    const bench = new Bench();
    const emitted: string[] = [];
    const driver = bench.driver({ onEvent: (event) => emitted.push(event) });
    await driver.bind({ port: 0 });
    const arrivals: number[] = [];
    for (let i = 1; i <= 100; i++) {
      bench.engine.events = [...bench.engine.events, `${i}`];
      bench.bound[0]!.receive(Uint8Array.of(i), bench.engine.path);
      if (emitted.length === i) arrivals.push(i);
    }
    expect(arrivals).toEqual([1, 32, 64, 96]);
    bench.turn();
    expect(emitted).toEqual(Array.from({ length: 100 }, (_, i) => `${i + 1}`));
  });

  it('handles timeouts, then events, then sends', async () => {
    const bench = new Bench();
    const order: string[] = [];
    const driver = bench.driver({
      onEvent: (event) => {
        order.push(event);
        bench.engine.toSend = 1;
      },
    });
    await driver.bind({ port: 0 });
    bench.engine.timeout = 90;
    bench.engine.events = ['a', 'b'];
    driver.wake();
    bench.turn();
    expect(order).toEqual(['a', 'b']);
    expect(bench.engine.calls).toEqual(['timeout 100', 'transmit', 'transmit']);
    expect(bench.inFlight).toHaveLength(1);
  });

  it('sends each packet with the bytes of the engine and releases it by its offset', async () => {
    const { bench, driver } = await Bench.bound();
    bench.engine.toSend = 3;
    driver.wake();
    bench.turn();
    expect(bench.inFlight.map(({ offset, length, path }) => [offset, length, path])).toEqual([
      [0, 10, bench.engine.path],
      [100, 11, bench.engine.path],
      [200, 12, bench.engine.path],
    ]);
    expect(new Set(bench.inFlight.map(({ released }) => released)).size).toBe(1);
    expect(bench.engine.released).toEqual([]);
    bench.leave();
    expect(bench.engine.released).toEqual([0, 100, 200]);
    expect(driver.stats.sent).toBe(3);
  });

  it('lets the sockets receive between rounds of batches', async () => {
    const { bench, driver } = await Bench.bound();
    bench.engine.toSend = 1000;
    const sent: number[] = [];
    driver.wake();
    while (bench.due > 0) {
      // sockets that release packets while the engine is polled
      const before = driver.stats.sent;
      bench.turn();
      sent.push(driver.stats.sent - before);
      bench.leave();
    }
    expect(driver.stats.sent).toBe(1000);
    // The first turn has the service of `wake`, too.
    expect([sent[0], Math.max(...sent.slice(1))]).toEqual([64, 32]);
  });

  it.each([
    { packets: 1, services: 16 },
    { packets: 30, services: 2 },
  ])('lets them receive after $services services of $packets packets, however often it is woken', async ({ packets, services }) => {
    const { bench, driver } = await Bench.bound();
    let longest = 0;
    for (let sinceTurn = 1; driver.stats.sent < 1000; sinceTurn++) {
      bench.time += 1;
      bench.engine.toSend = packets;
      driver.wake();
      bench.settle();
      bench.leave();
      if (bench.deferred.length === 0) continue;
      bench.turn();
      bench.leave();
      longest = Math.max(longest, sinceTurn - 1);
      sinceTurn = 0;
    }
    expect(longest).toBe(services);
  });

  it('stops polling while the sockets are behind and continues when they have caught up', async () => {
    const { bench, driver } = await Bench.bound();
    for (let i = 0; i < 224; i++) expect(driver.send(new Uint8Array(1), bench.engine.path)).toBe(true);
    expect(driver.send(new Uint8Array(1), bench.engine.path)).toBe(false);
    expect(driver.stats).toMatchObject({ sent: 224, dropped: 1 });
    bench.engine.toSend = 100;
    driver.wake();
    await bench.turns();
    const { sent } = driver.stats;
    expect(sent).toBeGreaterThanOrEqual(256);
    bench.engine.calls.length = 0;
    bench.leave(sent - 225);
    await bench.turns();
    expect(bench.engine.calls).toEqual([]);
    bench.leave(1);
    await bench.turns();
    expect(driver.stats.sent).toBeGreaterThan(sent);
  });

  it('keeps capacity for packets of the engine however much is forwarded', async () => {
    const { bench, driver } = await Bench.bound();
    for (let turn = 1; turn <= 500; turn++) {
      bench.leave(20);
      bench.engine.toSend = 1;
      driver.wake();
      for (let i = 0; i < 25; i++) driver.send(new Uint8Array(1), bench.engine.path);
      await bench.turns();
      expect(bench.engine.toSend).toBe(0);
    }
    expect(driver.stats.dropped).toBeGreaterThan(2_000);
  });

  it("polls again when the sockets held all of the engine's slots", async () => {
    const { bench, driver } = await Bench.bound();
    bench.engine.toSend = 150;
    driver.wake();
    await bench.turns();
    expect(driver.stats.sent).toBe(SLOTS);
    while (bench.inFlight.length > 0) {
      bench.leave();
      await bench.turns();
    }
    expect(driver.stats.sent).toBe(150);
    expect(bench.engine.released).toHaveLength(150);
  });

  it('releases and counts packets for a removed socket', async () => {
    const bench = new Bench();
    const driver = bench.driver();
    const socket = await driver.bind({ port: 0 });
    driver.remove(socket);
    bench.engine.toSend = 40;
    driver.wake();
    await bench.turns();
    expect(bench.engine.released).toHaveLength(40);
    expect(driver.stats).toMatchObject({ sent: 0, dropped: 40 });
    expect(driver.send(new Uint8Array(1), bench.engine.path)).toBe(false);
    expect(bench.closed).toEqual([0]);
  });

  it('keeps one timer, reschedules it only to an earlier time and again when it fired too early', async () => {
    const { bench, driver } = await Bench.bound();
    bench.engine.timeout = 150;
    driver.wake();
    await bench.turns();
    expect(bench.timers.map(({ at }) => at)).toEqual([150]);
    bench.engine.timeout = 200;
    driver.wake();
    await bench.turns();
    expect(bench.timers.map(({ at }) => at)).toEqual([150]);
    bench.pass(50);
    await bench.turns();
    expect(bench.engine.calls).not.toContain('timeout 150');
    expect(bench.timers.map(({ at }) => at)).toEqual([200]);
    bench.engine.timeout = 180;
    driver.wake();
    await bench.turns();
    expect(bench.timers.map(({ at }) => at)).toEqual([180]);
    bench.pass(30);
    await bench.turns();
    expect(bench.engine.calls).toContain('timeout 180');
    expect(bench.timers).toEqual([]);
  });

  describe('interceptors', () => {
    /** A driver that passes datagrams of one byte to the engine, and the datagrams that its interceptors saw. */
    function intercepted() {
      const bench = new Bench();
      const driver = bench.driver();
      const seen: string[] = [];
      const add = (name: string, takes: number, before = (): void => {}): (() => void) =>
        driver.intercept((datagram) => {
          seen.push(`${name}${datagram[0]}`);
          before();
          return datagram[0] === takes;
        });
      const receive = (...bytes: number[]): void => {
        for (const byte of bytes) driver.receive(Uint8Array.of(byte), bench.engine.path);
      };
      return { bench, driver, seen, add, receive };
    }

    it('see each datagram in the order in which they were added, until one consumes it', () => {
      const { bench, seen, add, receive } = intercepted();
      add('a', 7);
      add('b', 8);
      receive(7, 8, 9);
      expect(seen).toEqual(['a7', 'a8', 'b8', 'a9', 'b9']);
      expect(bench.engine.calls).toEqual(['receive 9 at 100']);
    });

    it('pass on the bytes with their changes', () => {
      const { bench, driver, seen, add, receive } = intercepted();
      driver.intercept((datagram) => {
        datagram[0]! += 100;
        return false;
      });
      add('b', 7);
      receive(7);
      expect([seen, bench.engine.calls]).toEqual([['b107'], ['receive 107 at 100']]);
    });

    it('take effect from the next datagram when they are added or removed during one', () => {
      const { seen, add, receive } = intercepted();
      let removeB = (): void => {};
      let once = true;
      add('a', 0, () => {
        if (!once) return;
        once = false;
        removeB();
        add('c', 0);
      });
      removeB = add('b', 0);
      receive(1);
      expect(seen.splice(0)).toEqual(['a1', 'b1']);
      receive(2);
      expect(seen).toEqual(['a2', 'c2']);
    });

    it('are removed one by one, also when they are the same function', () => {
      const { driver, receive } = intercepted();
      let calls = 0;
      const interceptor = (): boolean => ++calls < 0;
      const remove = driver.intercept(interceptor);
      driver.intercept(interceptor);
      receive(1);
      remove();
      remove();
      receive(2);
      expect(calls).toBe(3);
    });

    it('that throw are logged, and their datagram is dropped', () => {
      const { bench, driver, seen, add, receive } = intercepted();
      const remove = add('a', 0, () => {
        throw new Error('bug in an interceptor');
      });
      add('b', 0);
      receive(1);
      remove();
      receive(2);
      expect([seen, bench.engine.calls]).toEqual([['a1', 'b2'], ['receive 2 at 100']]);
      expect([driver.stats.failures, bench.logged.length]).toEqual([1, 1]);
    });
  });

  describe('with a bug in the engine or the owner', () => {
    it.each(['receive', 'transmit', 'timeout'])('logs an exception of %s and continues', async (verb) => {
      const { bench, driver } = await Bench.bound();
      bench.engine.throwIn = verb;
      bench.engine.timeout = 100;
      bench.bound[0]!.receive(Uint8Array.of(1), bench.engine.path);
      await bench.turns();
      expect(driver.stats.failures).toBe(1);
      expect(bench.logged).toHaveLength(1);
      expect(bench.logged[0]).toContain(`bug in ${verb}`);
      bench.engine.throwIn = '';
      bench.engine.toSend = 1;
      driver.wake();
      await bench.turns();
      expect(driver.stats.sent).toBe(1);
    });

    it('emits every event although one listener throws', async () => {
      const bench = new Bench();
      const seen: string[] = [];
      const driver = bench.driver({
        onEvent: (event) => {
          seen.push(event);
          if (event === 'b') throw new Error('bug');
        },
      });
      bench.engine.events = ['a', 'b', 'c'];
      driver.wake();
      await bench.turns();
      expect(seen).toEqual(['a', 'b', 'c']);
      expect(driver.stats.failures).toBe(1);
    });

    it('does not spin, and does not fill the log', async () => {
      const bench = new Bench();
      const driver = bench.driver();
      bench.engine.throwIn = 'transmit';
      bench.engine.timeout = 0;
      driver.wake();
      for (let i = 0; i < 1000; i++) {
        await bench.turns();
        expect(bench.timers).toHaveLength(1);
        bench.pass(100);
      }
      expect(driver.stats.failures).toBe(1000);
      expect(bench.logged).toHaveLength(10);
    });
  });

  describe('close', () => {
    it('sends what is left, waits until it has left and closes the sockets', async () => {
      const { bench, driver } = await Bench.bound();
      await driver.bind({ port: 1 });
      bench.engine.timeout = 1e6;
      driver.wake();
      await bench.turns();
      bench.engine.toSend = 300;
      let done = false;
      const closing = driver.close().then(() => {
        done = true;
      });
      for (let i = 0; i < 50 && bench.engine.toSend > 0; i++) {
        bench.turn();
        if (bench.engine.toSend > 0) bench.leave(20);
      }
      await bench.turns();
      expect([done, driver.stats.sent]).toEqual([false, 300]);
      bench.leave(bench.inFlight.length - 1);
      await bench.turns();
      expect(bench.closed).toEqual([]);
      bench.leave();
      await bench.turns();
      await closing;
      expect(bench.closed).toEqual([0, 1]);
      expect(bench.timers).toEqual([]);
      expect(bench.engine.released).toHaveLength(300);
    });

    it('ends although the engine throws, may be called again, and emits nothing further', async () => {
      const { bench, driver } = await Bench.bound();
      bench.engine.throwIn = 'transmit';
      const closing = driver.close();
      expect(driver.close()).toBe(closing);
      await bench.turns();
      await closing;
      bench.bound[0]!.receive(Uint8Array.of(1), bench.engine.path);
      driver.wake();
      expect([bench.due, bench.engine.calls]).toEqual([0, ['transmit']]);
    });

    it('closes a socket whose bind was in progress', async () => {
      const bench = new Bench();
      const driver = bench.driver();
      const binding = driver.bind({ port: 0 });
      const closing = driver.close();
      await bench.turns();
      await Promise.all([binding, closing]);
      expect(bench.closed).toEqual([0]);
    });
  });
});
