/** Listeners: order, removal, and one that throws. */
import { describe, expect, it } from 'vitest';
import { type Log, silentLog } from '../../platform/environment.ts';
import { Emitter } from '../../runtime/emitter.ts';

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
