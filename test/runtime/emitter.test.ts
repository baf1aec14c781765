/** Listeners: order, removal, and one that throws. */
import { describe, expect, it } from 'vitest';
import { type Log, silentLog } from '../../platform/environment.ts';
import { Emitter, endEvents, MAX_EVENTS } from '../../runtime/emitter.ts';

interface Events {
  number: number;
  text: string;
}

function recording(): { log: Log; errors: string[] } {
  const errors: string[] = [];
  return { errors, log: { ...silentLog, error: (message) => errors.push(message) } };
}

describe('Emitter', () => {
  it('calls listeners in order, for each event its own', () => {
    const emitter = new Emitter<Events>(silentLog);
    const seen: unknown[] = [];
    emitter.on('number', (value) => seen.push(['a', value]));
    emitter.on('number', (value) => seen.push(['b', value]));
    emitter.on('text', (value) => seen.push(value));
    emitter.emit('number', 1);
    emitter.emit('text', 'x');
    expect(seen).toEqual([['a', 1], ['b', 1], 'x']);
  });

  it('logs a listener that throws and continues', () => {
    const { log, errors } = recording();
    const emitter = new Emitter<Events>(log);
    const seen: number[] = [];
    emitter.on('number', () => {
      throw new Error('mine');
    });
    emitter.on('number', (value) => seen.push(value));
    emitter.emit('number', 7);
    expect(seen).toEqual([7]);
    expect(errors).toEqual(['listener of number threw']);
  });

  it('lets a listener remove itself and others while it is called', () => {
    const emitter = new Emitter<Events>(silentLog);
    const seen: string[] = [];
    const removeFirst = emitter.on('number', () => {
      seen.push('first');
      removeFirst();
      removeFirst();
    });
    emitter.on('number', () => seen.push('second'));
    emitter.emit('number', 1);
    emitter.emit('number', 2);
    expect(seen).toEqual(['first', 'second', 'second']);
  });

  it('applies the addition or removal of a listener by another one from the next emission on', () => {
    const emitter = new Emitter<Events>(silentLog);
    const seen: string[] = [];
    let removeLast = (): unknown => undefined;
    emitter.on('number', (value) => {
      if (value !== 1) return;
      removeLast();
      emitter.on('number', () => seen.push('added'));
    });
    removeLast = emitter.on('number', () => seen.push('last'));
    emitter.emit('number', 1);
    expect(seen).toEqual(['last']);
    emitter.emit('number', 2);
    expect(seen).toEqual(['last', 'added']);
  });

  it('calls a listener of once with the next event only, also when it emits itself', () => {
    const emitter = new Emitter<Events>(silentLog);
    const seen: number[] = [];
    emitter.once('number', (value) => {
      seen.push(value);
      emitter.emit('number', value + 1);
    });
    const stop = emitter.once('number', (value) => seen.push(-value));
    stop();
    emitter.emit('number', 1);
    expect(seen).toEqual([1]);
  });

  it('forgets one registration of a function with each off, and ignores one that it does not know', () => {
    const emitter = new Emitter<Events>(silentLog);
    let calls = 0;
    const listener = () => {
      calls++;
    };
    emitter.on('number', listener);
    emitter.on('number', listener);
    emitter.off('number', listener);
    emitter.off('number', () => {});
    emitter.emit('number', 1);
    emitter.off('number', listener);
    emitter.off('number', listener);
    emitter.emit('number', 1);
    expect(calls).toBe(1);
  });

  it('keeps two registrations of one function apart', () => {
    const emitter = new Emitter<Events>(silentLog);
    let calls = 0;
    const listener = () => {
      calls++;
    };
    const remove = emitter.on('number', listener);
    emitter.on('number', listener);
    remove();
    emitter.emit('number', 1);
    expect(calls).toBe(1);
  });
});

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const seen: T[] = [];
  for await (const value of values) seen.push(value);
  return seen;
}

describe('events', () => {
  interface Objects {
    place: { at: number };
    over: object;
  }

  it('gives each event with its name and its values, to each reader', async () => {
    const emitter = new Emitter<Objects>(silentLog);
    const readers = [emitter.events(), emitter.events()];
    emitter.emit('place', { at: 7 });
    emitter.emit('over', {});
    endEvents(emitter);
    for (const reader of readers) expect(await all(reader)).toEqual([{ type: 'place', at: 7 }, { type: 'over' }]);
    expect(await all(emitter.events())).toEqual([]);
  });

  it('keeps 64 for a slow reader; one more ends it with OUT_OF_MEMORY after them, and no other reader', async () => {
    const emitter = new Emitter<Objects>(silentLog);
    const slow = emitter.events();
    for (let at = 0; at < MAX_EVENTS; at++) emitter.emit('place', { at });
    const late = emitter.events();
    for (const at of [64, 65]) emitter.emit('place', { at });
    endEvents(emitter);
    const seen: unknown[] = [];
    await expect(
      (async () => {
        for await (const event of slow) seen.push(event);
      })(),
    ).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' });
    expect([seen.length, await all(late)]).toEqual([
      MAX_EVENTS,
      [
        { type: 'place', at: 64 },
        { type: 'place', at: 65 },
      ],
    ]);
  });

  it('keeps none for a reader that has left', async () => {
    const emitter = new Emitter<Objects>(silentLog);
    const controller = new AbortController();
    const readers = [emitter.events(), emitter.events({ signal: controller.signal })];
    await readers[0]?.close();
    controller.abort();
    emitter.emit('over', {});
    for (const reader of [...readers, emitter.events({ signal: controller.signal })])
      expect(await reader.next()).toEqual({ value: undefined, done: true });
  });
});
