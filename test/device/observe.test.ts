/** Resources that clients observe (RFC 7641): device and client over a base station, in virtual time. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Answer, Connection, ObserveOptions, SvcError } from '../../client/node.ts';
import type { CoapHandler, CoapResource, Device } from '../../device/index.ts';
import { ProductFixture } from '../support/fixture/products.ts';

let fixture: ProductFixture;
let device: Device;
beforeEach(async () => {
  fixture = await ProductFixture.withStation();
  ({ device } = await fixture.attached());
});

/** The responses and ends that an observer received. */
class Recorder {
  readonly responses: string[] = [];
  readonly ends: (string | null)[] = [];

  async follow(answers: AsyncIterable<Answer>): Promise<void> {
    try {
      for await (const { status, text, sequence } of answers)
        this.responses.push(`${status} ${text}${sequence === undefined ? '' : ' observed'}`);
      this.ends.push(null);
    } catch (error) {
      this.ends.push((error as SvcError).code);
    }
  }
}

function observable(path: string, handler: CoapHandler): CoapResource {
  return device.addCoapResource('GET', path, handler, { observable: true });
}

const observe = (connection: Connection, path: string, options?: ObserveOptions): { observer: Recorder; cancel: () => void } => {
  const observer = new Recorder();
  const observation = connection.observe(path, options);
  void observer.follow(observation);
  return { observer, cancel: () => void observation.close() };
};

const run = (ms = 500): Promise<boolean> => fixture.sim.run(ms);

describe('an observable resource', () => {
  test('sends each observer its state and each change, until they cancel', { tags: ['slow'] }, async () => {
    let state = 'one';
    const resource = observable('/state', () => ({ status: 205, payload: state }));
    const [first, second] = [await fixture.connected(), await fixture.connected()];
    const a = observe(first, '/state');
    const b = observe(second, '/state');
    await run();
    expect(resource.observers).toBe(2);
    state = 'two';
    resource.notify();
    await run();
    a.cancel();
    await run();
    expect(resource.observers).toBe(1);
    state = 'three';
    resource.notify();
    await run();
    b.cancel();
    await run();
    expect(resource.observers).toBe(0);
    expect(a.observer.responses).toEqual(['205 one observed', '205 two observed']);
    expect(b.observer.responses).toEqual(['205 one observed', '205 two observed', '205 three observed']);
    expect([a.observer.ends, b.observer.ends]).toEqual([[null], [null]]);
  });

  test('runs its handler with the observer’s request, and once for changes in a row', async () => {
    const seen: string[] = [];
    const resource = observable('/rooms/{room}', ({ parameters, path, connection, payload }) => {
      seen.push(`${parameters.room} ${path} ${connection.ref} ${payload.length}`);
      return { status: 205, payload: 'x', maxAge: 7 };
    });
    const connection = await fixture.connected();
    const maxAges: (number | undefined)[] = [];
    void (async () => {
      for await (const { maxAge } of connection.observe('/rooms/k%20l')) maxAges.push(maxAge);
    })().catch(() => {});
    await run();
    for (let i = 0; i < 100; i++) resource.notify();
    await run();
    expect(seen).toEqual(Array(2).fill('k l /rooms/k%20l 1 0'));
    expect(maxAges).toEqual([7, 7]);
  });

  test('notifies only the path whose parameters are named', { tags: ['slow'] }, async () => {
    const resource = observable('/rooms/{room}', ({ parameters }) => ({ status: 205, payload: parameters.room as string }));
    const connection = await fixture.connected();
    const [kitchen, hall] = [observe(connection, '/rooms/kitchen'), observe(connection, '/rooms/hall')];
    await run();
    resource.notify({ room: 'hall' });
    resource.notify({ room: 'cellar' });
    resource.notify({ floor: '1' });
    await run();
    expect(kitchen.observer.responses).toHaveLength(1);
    expect(hall.observer.responses).toHaveLength(2);
  });

  test('sends a change that happened while the first answer was in preparation after that answer', { tags: ['slow'] }, async () => {
    let answer: (() => void) | undefined;
    let runs = 0;
    const resource = observable('/slow', () => {
      const payload = `${++runs}`;
      return runs > 1 ? { status: 205, payload } : new Promise((resolve) => (answer = () => resolve({ status: 205, payload })));
    });
    const { observer } = observe(await fixture.connected(), '/slow');
    await run();
    resource.notify();
    answer?.();
    resource.notify();
    await run();
    expect(observer.responses).toEqual(['205 1 observed', '205 2 observed']);
  });

  test('authorizes each notification again: a refusal is the last answer', async () => {
    let allowed = true;
    device.onAuthorizationRequest(() => allowed);
    const resource = observable('/state', async ({ connection }) =>
      (await device.authorize(connection, 'State:Get')) ? { status: 205, payload: 'x' } : { status: 403, payload: 'Access denied' },
    );
    const { observer } = observe(await fixture.connected(), '/state');
    await run();
    allowed = false;
    resource.notify();
    await run();
    expect(resource.observers).toBe(0);
    allowed = true;
    resource.notify();
    await run();
    expect(observer.responses).toEqual(['205 x observed', '403 Access denied']);
    expect(observer.ends).toEqual([null]);
  });

  test('begins no observation when the first answer is an error', async () => {
    const resource = observable('/state', () => ({ status: 404, payload: 'gone' }));
    const { observer } = observe(await fixture.connected(), '/state');
    await run();
    expect(resource.observers).toBe(0);
    expect(observer.responses).toEqual(['404 gone']);
    expect(observer.ends).toEqual([null]);
  });

  test('forgets observers whose connection ends, from either end', { tags: ['slow'] }, async () => {
    const resource = observable('/state', () => ({ status: 205 }));
    const [closing, closed] = [await fixture.connected(), await fixture.connected()];
    const a = observe(closing, '/state');
    const b = observe(closed, '/state');
    await run();
    expect(resource.observers).toBe(2);
    await fixture.settle(closing.close());
    void device.connection(2).close();
    await run();
    expect(resource.observers).toBe(0);
    resource.notify();
    expect([a.observer.ends, b.observer.ends]).toEqual([['STOPPED'], ['STOPPED']]);
  });

  test('notifies its observers when it is removed', { tags: ['slow'] }, async () => {
    let answer: (() => void) | undefined;
    const resource = observable('/state', () => ({ status: 205, payload: 'x' }));
    const slow = observable('/slow', () => new Promise((resolve) => (answer = () => resolve({ status: 205, payload: 'y' }))));
    const connection = await fixture.connected();
    const [idle, registering] = [observe(connection, '/state'), observe(connection, '/slow')];
    await run();
    for (const each of [resource, resource, slow]) each.remove();
    answer?.();
    await run();
    expect([resource.observers, slow.observers]).toEqual([0, 0]);
    expect(idle.observer.responses).toEqual(['205 x observed', '404 Not found']);
    expect(registering.observer.responses).toEqual(['205 y']);
    expect([idle.observer.ends, registering.observer.ends]).toEqual([[null], [null]]);
    expect((await fixture.coap(connection, 'GET', '/state')).status).toBe(404);
  });

  test('sends no answer to an observer that cancels while the handler runs, and forgets it', { tags: ['slow'] }, async () => {
    let answer: (() => void) | undefined;
    const resource = observable('/slow', () => new Promise((resolve) => (answer = () => resolve({ status: 205 }))));
    const { observer, cancel } = observe(await fixture.connected(), '/slow');
    await run();
    cancel();
    await run();
    expect(resource.observers).toBe(0);
    answer?.();
    await run();
    expect(observer.responses).toEqual([]);
  });
});

describe('limits:', () => {
  test('above the device limit a request to observe is answered once', async () => {
    device.limitCoapObservations(2);
    const resource = observable('/state', () => ({ status: 205, payload: 'x' }));
    const connection = await fixture.connected();
    const all = [1, 2, 3].map(() => observe(connection, '/state'));
    await run();
    expect(resource.observers).toBe(2);
    expect(all.map(({ observer }) => observer.responses)).toEqual([['205 x observed'], ['205 x observed'], ['205 x']]);
    expect(all[2]?.observer.ends).toEqual([null]);
    all[0]?.cancel();
    await run();
    const again = observe(connection, '/state');
    await run();
    expect(again.observer.responses).toEqual(['205 x observed']);
  });

  test('one connection keeps 32, and its other requests are served', async () => {
    const resource = observable('/state', () => ({ status: 205, payload: 'x' }));
    const [greedy, other] = [await fixture.connected(), await fixture.connected()];
    for (let i = 0; i < 60; i++) observe(greedy, '/state');
    await run();
    expect(resource.observers).toBe(32);
    expect((await fixture.coap(greedy, 'GET', '/state')).status).toBe(205);
    observe(other, '/state');
    await run();
    expect(resource.observers).toBe(33);
  });

  test('notifications wait for the concurrency limit of requests', { tags: ['slow'] }, async () => {
    const release: (() => void)[] = [];
    device.addCoapResource('GET', '/slow', () => new Promise((resolve) => release.push(() => resolve({ status: 205 }))));
    let state = 'one';
    const resource = observable('/state', () => ({ status: 205, payload: state }));
    const connection = await fixture.connected();
    const { observer } = observe(connection, '/state');
    await run();
    device.limitCoapServerRequests(1);
    const slow = connection.get('/slow');
    await run();
    state = 'two';
    resource.notify();
    await run();
    expect(observer.responses).toHaveLength(1);
    release[0]?.();
    await fixture.settle(slow);
    await run();
    expect(observer.responses).toEqual(['205 one observed', '205 two observed']);
  });
});

describe('no observation begins for', () => {
  test('a resource that is not observable: it answers once', async () => {
    const resource = device.addCoapResource('GET', '/plain', () => ({ status: 205, payload: 'x' }));
    const { observer } = observe(await fixture.connected(), '/plain');
    await run();
    resource.notify();
    await run();
    expect(observer.responses).toEqual(['205 x']);
    expect(observer.ends).toEqual([null]);
  });

  test('another method than GET: only GET can be observable', { tags: ['slow'] }, async () => {
    expect(() => device.addCoapResource('PUT', '/x', () => ({ status: 204 }), { observable: true })).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
    );
    const connection = await fixture.connected();
    expect(() => connection.observe('/x', { method: 'PUT' as 'GET' })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    await fixture.settle(connection.close());
    expect(() => connection.observe('/x')).toThrow(expect.objectContaining({ code: 'STOPPED' }));
  });

  test('a GET with a payload: it is answered once, and the payload is not kept', { tags: ['slow'] }, async () => {
    const resource = observable('/state', ({ payload }) => ({ status: 205, payload }));
    const { observer } = observe(await fixture.connected(), '/state', { body: 'body' });
    await run();
    expect(observer.responses).toEqual(['205 body']);
    expect(resource.observers).toBe(0);
  });
});
