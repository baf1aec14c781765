/**
 * `svc ping` and `svc coap --observe` without a device: their output and how they end; a payload at a terminal and in a
 * pipe.
 */
import { describe, expect, test } from 'vitest';
import { observe } from '../../cli/coap/observe.ts';
import { printPayload } from '../../cli/coap/payload.ts';
import { Output } from '../../cli/frame/output.ts';
import { table } from '../../cli/frame/table.ts';
import { ping } from '../../cli/ping.ts';
import { Answer, type ObserveOptions, type SvcError } from '../../client/node.ts';
import { encode } from '../../protocol/cbor/index.ts';
import type { CoapResponse } from '../../protocol/coap/index.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { Subscription } from '../../runtime/subscription.ts';
import { TextStream } from './text-stream.ts';

/** An output and what it wrote. */
function written(isTTY = false): { output: Output; text: () => string } {
  const stream = new TextStream(isTTY);
  return { output: new Output(false, { stdout: stream, stderr: stream }), text: () => stream.text };
}

describe('ping', () => {
  const late = () => Promise.reject(new LocalError('TIMEOUT', 'no answer'));

  async function run(
    asks: (() => Promise<number>)[],
    { count = asks.length, connected = (): boolean => true, onPause = (_ms: number, _stop: AbortController) => {} } = {},
  ) {
    const { output, text } = written();
    const stop = new AbortController();
    const way = () => ({ over: 'relay', text: 'through the base station' });
    const next = [...asks];
    const ended = ping({
      count,
      interval: 1000,
      device: 'pr.de',
      output,
      signal: stop.signal,
      ask: () => next.shift()!(),
      way,
      isConnected: connected,
      pause: async (ms) => onPause(ms, stop),
    });
    return {
      error: await ended.then(
        () => null,
        (error: Error) => error.message,
      ),
      lines: text().trimEnd().split('\n'),
    };
  }

  test('reports a lost answer, and counts it in the summary', async () => {
    const pauses: number[] = [];
    const { error, lines } = await run([async () => 10, late, async () => 130.25], { onPause: (ms) => pauses.push(ms) });
    expect(error).toBeNull();
    expect(lines).toEqual([
      '1  10.0 ms  through the base station',
      expect.stringMatching(/^2 {2}no answer \(TIMEOUT\)/),
      '3  130 ms  through the base station',
      '3 sent, 2 answered; round trip min 10.0 ms, avg 70.1 ms, max 130 ms',
    ]);
    expect(pauses).toEqual([990, 1000]);
  });

  test('fails without an answer', async () => {
    expect(await run([late, late])).toMatchObject({
      error: 'pr.de did not answer',
      lines: [
        expect.stringMatching(/^1 {2}no answer \(TIMEOUT\)/),
        expect.stringMatching(/^2 {2}no answer \(TIMEOUT\)/),
        '2 sent, none answered',
      ],
    });
  });

  test('prints the summary at Ctrl-C, without the pending request', async () => {
    const stopping = (_ms: number, stop: AbortController): void => stop.abort();
    expect(await run([async () => 5], { count: 9, onPause: stopping })).toEqual({
      error: null,
      lines: ['1  5.0 ms  through the base station', '1 sent, 1 answered; round trip min 5.0 ms, avg 5.0 ms, max 5.0 ms'],
    });
  });

  test('ends with its connection', async () => {
    let connected = true;
    const lost = async (): Promise<number> => {
      connected = false;
      throw new LocalError('STOPPED', 'the connection is lost');
    };
    expect(await run([async () => 5, lost], { count: 9, connected: () => connected })).toMatchObject({
      error: expect.stringMatching(/^the connection to pr\.de ended: the connection is lost/),
      lines: [
        '1  5.0 ms  through the base station',
        expect.stringMatching(/^2 {2}the connection is lost \(STOPPED\)$/),
        expect.stringMatching(/^2 sent, 1 answered/),
      ],
    });
  });
});

describe('observe', () => {
  const answer = (text: string, more: Partial<CoapResponse> = {}): Answer =>
    new Answer({ status: 205, payload: new TextEncoder().encode(text), observe: 1, ...more });

  /** Observes a resource that gives these answers, and then ends, fails, or continues. */
  async function watch(
    answers: Answer[],
    end: 'ends' | 'continues' | Error,
    { count, stopAfter }: { count?: number; stopAfter?: number } = {},
  ) {
    const { output, text } = written();
    const stop = new AbortController();
    const calls: string[] = [];
    const take = (): Answer | undefined => {
      if (answers.length === stopAfter) stop.abort();
      return answers.shift();
    };
    const connection = {
      observe: (_: string, { signal }: ObserveOptions = {}) => {
        const subscription = new Subscription({ take, ended: () => calls.push('cancelled') }, signal);
        if (end !== 'continues') subscription.end(end === 'ends' ? 'ended' : (end as SvcError));
        return subscription;
      },
    };
    const settled = async (): Promise<void> => void calls.push('settled');
    const request = { signal: stop.signal };
    const result = await observe(connection, '/x', request, { output, signal: stop.signal, count, raw: false, settled }).then(
      () => 'done',
      (error: Error) => error.message,
    );
    return { calls, text: text(), result };
  }

  test('cancels at the device at Ctrl-C, and waits until that has arrived', async () => {
    const seen = await watch([answer('one'), answer('two')], 'continues', { stopAfter: 0 });
    expect(seen).toEqual({ result: 'done', text: 'one\ntwo\n', calls: ['cancelled', 'settled'] });
  });

  test('prints no more answers than the count that was given', async () => {
    const seen = await watch([answer('one'), answer('two')], 'continues', { count: 1 });
    expect(seen).toEqual({ result: 'done', text: 'one\n', calls: ['cancelled', 'settled'] });
  });

  test('fails at an error that ends it, and when the connection is lost', async () => {
    const denied = new Answer({ status: 403, payload: new TextEncoder().encode('Access denied') });
    expect(await watch([answer('one'), denied], 'ends')).toMatchObject({
      result: 'the device answered 4.03: Access denied',
      text: 'one\n',
    });
    expect(await watch([], new LocalError('STOPPED', 'the connection is lost'))).toMatchObject({ result: 'the connection is lost' });
  });
});

describe('a payload', () => {
  const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
  test.each([
    ['JSON', 50, utf8('{"a":1}'), '{"a":1}\n', '{\n  "a": 1\n}\n'],
    ['invalid JSON', 50, utf8('{"a"'), '{"a"\n', '{"a"\n'],
    ['CBOR', 60, encode({ a: 1 }), '{"a":1}\n', '{\n  "a": 1\n}\n'],
    ['invalid CBOR', 60, Uint8Array.of(0x7f, 0x7f), '\x7f\x7f', '7f7f\n'],
    ['text', 0, utf8('21.5'), '21.5\n', '21.5\n'],
    ['invalid text', 0, Uint8Array.of(0xff), '\ufffd', 'ff\n'],
    ['bytes', 42, new Uint8Array(33), '\0'.repeat(33), `${'00'.repeat(32)}\n00\n`],
    ['nothing', 0, new Uint8Array(0), '', ''],
  ])('%s has its form in a pipe and at a terminal', (_, format, bytes, piped, shown) => {
    for (const [isTTY, expected] of [
      [false, piped],
      [true, shown],
    ] as const) {
      const { output, text } = written(isTTY);
      printPayload({ format, bytes }, output, false);
      expect(text()).toBe(expected);
    }
  });

  test('is printed unchanged when that is requested, also at a terminal', () => {
    const { output, text } = written(true);
    printPayload({ format: 60, bytes: Uint8Array.of(0x61, 0x41) }, output, true);
    expect(text()).toBe('aA');
  });
});

test('columns are as wide as their longest cell, and an empty cell has a dash', () => {
  expect(
    table(
      ['id', 'name'],
      [
        ['a', undefined],
        ['𝕏𝕏𝕏', ''],
      ],
    ),
  ).toEqual(['ID   NAME', 'a    -', '𝕏𝕏𝕏  -']);
});

test('columns of numbers are aligned at the end', () => {
  expect(
    table(
      ['name', 'bytes'],
      [
        ['a', '1234567'],
        ['longer', '1'],
      ],
      [1],
    ),
  ).toEqual(['NAME      BYTES', 'a       1234567', 'longer        1']);
});
