/**
 * The semantics of a stream over a carrier that the test controls; `streams.test.ts` tests the same over the real core.
 */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Payload } from '../../../protocol/arguments.ts';
import { RemoteError, StreamCode } from '../../../protocol/errors/index.ts';
import type { StreamOwner } from '../../../runtime/session/owner.ts';
import { Stream } from '../../../runtime/session/stream.ts';
import { NO_PAYLOADS } from '../../support/wrong-arguments.ts';

/** The peer's data and capacity, both set by the test; requests of the stream are recorded. */
class TestCarrier implements StreamOwner<Stream> {
  readonly connection = { streams: this };
  readonly calls: string[] = [];
  readonly sent: number[] = [];
  arrived: number[] = [];
  end = false;
  room = Number.POSITIVE_INFINITY;

  take(_id: number, max: number): Uint8Array | null {
    if (this.arrived.length === 0 && this.end) return null;
    return Uint8Array.from(this.arrived.splice(0, max));
  }

  read(_id: number, target: Uint8Array): number {
    if (this.arrived.length === 0) return this.end ? -1 : 0;
    // A piece at a time, as from segments.
    const piece = this.arrived.splice(0, Math.min(3, target.length));
    target.set(piece);
    return piece.length;
  }

  write(_id: number, data: Uint8Array, start: number, end: number): number {
    const count = Math.min(this.room, end - start);
    this.room -= count;
    this.sent.push(...data.subarray(start, start + count));
    return count;
  }

  finish = () => void this.calls.push('finish');
  reset = (_id: number, code: number) => void this.calls.push(`reset ${code}`);
  stop = (_id: number, code: number) => void this.calls.push(`stop ${code}`);
  setWeight = (_id: number, weight: number) => void this.calls.push(`weight ${weight}`);
  stats = () => null;
  whileOpen = <T>(call: () => T) => call();
  ended = ({ id }: Stream) => void this.calls.push(`ended ${id}`);
}

let carrier: TestCarrier;
let s: Stream;
beforeEach(() => {
  carrier = new TestCarrier();
  s = new Stream(carrier, 0x80000001, 4);
});

const bytes = (...values: number[]) => Uint8Array.from(values);
const settledLater = async (promise: Promise<unknown>): Promise<boolean> => {
  let settled = false;
  promise.then(
    () => {
      settled = true;
    },
    () => {
      settled = true;
    },
  );
  for (let i = 0; i < 10; i++) await undefined;
  return settled;
};
const aborted = { code: 'STOPPED' };

it('takes a weight from 1 to 256 and passes it to its carrier', () => {
  for (const weight of [0, 257, 2.5]) expect(() => s.setWeight(weight)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  for (const weight of [1, 256]) s.setWeight(weight);
  expect(carrier.calls).toEqual(['weight 1', 'weight 256']);
});

describe('as an iterator', () => {
  it('gives what has arrived, and ends with the last byte', async () => {
    carrier.arrived = [1, 2, 3];
    carrier.end = true;
    const pieces: number[][] = [];
    for await (const piece of s) pieces.push([...piece]);
    expect(pieces).toEqual([[1, 2, 3]]);
    expect(carrier.calls).toEqual([]);
  });

  it('that is left early asks the peer to stop', async () => {
    carrier.arrived = [1];
    for await (const _ of s) break;
    expect(carrier.calls).toEqual([`stop ${StreamCode.NO_ERROR}`]);
    await expect(s.read()).rejects.toMatchObject(aborted);
    await s.write('x');
  });

  it('throws why the peer ended it', async () => {
    s.handle({ kind: 'reset', code: StreamCode.ABORTED });
    await expect(s[Symbol.asyncIterator]().next()).rejects.toMatchObject(aborted);
  });
});

describe('disposing', () => {
  it('aborts what was not closed', async () => {
    await s[Symbol.asyncDispose]();
    expect(carrier.calls).toEqual([`stop ${StreamCode.ABORTED}`, `reset ${StreamCode.ABORTED}`, 'ended 4']);
  });

  it('waits for a close, and leaves nothing to read', async () => {
    const closing = s.close();
    const disposing = s[Symbol.asyncDispose]();
    expect(await settledLater(disposing)).toBe(false);
    s.handle({ kind: 'finished' });
    await Promise.all([closing, disposing]);
    expect(carrier.calls).toEqual(['finish', `stop ${StreamCode.ABORTED}`, 'ended 4']);
  });
});

describe('data', () => {
  it('is text or bytes of any kind', async () => {
    for (const payload of [
      'h\u00e9',
      '',
      Uint8Array.of(1, 2).buffer,
      new DataView(Uint8Array.of(3, 4, 5).buffer, 1),
      new Uint16Array([0x0706]),
    ])
      await s.write(payload);
    expect(carrier.sent).toEqual([0x68, 0xc3, 0xa9, 1, 2, 4, 5, 6, 7]);
    const writer = s.writable.getWriter();
    await writer.write('x');
    expect(carrier.sent.at(-1)).toBe(0x78);
  });

  it('of any other type is refused at once, and the stream stays usable', async () => {
    for (const payload of NO_PAYLOADS) await expect(s.write(payload as Payload)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    for (const code of ['7', -1, null])
      expect(() => s.abort(code as number)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    await s.write(bytes(9));
    expect(carrier.sent).toEqual([9]);
    expect(carrier.calls).toEqual([]);
  });
});

describe('an array that its owner changes during a write', () => {
  const Resizable = ArrayBuffer as new (length: number, options: object) => ArrayBuffer;
  const part = async (): Promise<{ array: Uint8Array; write: Promise<void> }> => {
    const array = new Uint8Array(new Resizable(6, { maxByteLength: 12 }));
    carrier.room = 4;
    const write = s.write(array);
    expect(await settledLater(write)).toBe(false);
    carrier.room = 100;
    return { array, write };
  };

  it.each<[string, (buffer: ArrayBuffer) => void]>([
    ['transfers', (buffer) => void structuredClone(buffer, { transfer: [buffer] })],
    ['shrinks', (buffer) => (buffer as never as { resize(length: number): void }).resize(2)],
    ['grows', (buffer) => (buffer as never as { resize(length: number): void }).resize(12)],
  ])('%s: the write fails, and the stream stays usable', async (_, change) => {
    const { array, write } = await part();
    change(array.buffer as ArrayBuffer);
    s.handle({ kind: 'writable' });
    await expect(write).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await s.write(bytes(9));
    expect(carrier.sent).toEqual([0, 0, 0, 0, 9]);
  });
});

describe('reading', () => {
  it('returns all available bytes, up to max', async () => {
    carrier.arrived = [1, 2, 3, 4, 5, 6, 7];
    expect(await s.read(2)).toEqual(bytes(1, 2));
    expect(await s.read()).toEqual(bytes(3, 4, 5, 6, 7));
  });

  it('returns a new array each time', async () => {
    carrier.arrived = [1];
    const first = await s.read();
    carrier.arrived = [2];
    await s.read();
    expect(first).toEqual(bytes(1));
    expect(first.buffer.byteLength).toBe(1);
  });

  it('waits for the first byte', async () => {
    const read = s.read();
    expect(await settledLater(read)).toBe(false);
    s.handle({ kind: 'readable' }); // nothing yet: a spurious event changes nothing
    expect(await settledLater(read)).toBe(false);
    carrier.arrived = [9];
    s.handle({ kind: 'readable' });
    expect(await read).toEqual(bytes(9));
  });

  it('readAll refuses a length that no array has', async () => {
    await expect(s.readAll(2 ** 50)).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' });
  });

  it('readAll waits for the whole length', async () => {
    carrier.arrived = [1, 2, 3, 4];
    const read = s.readAll(6);
    expect(await settledLater(read)).toBe(false);
    carrier.arrived = [5, 6, 7];
    s.handle({ kind: 'readable' });
    expect(await read).toEqual(bytes(1, 2, 3, 4, 5, 6));
    expect(await s.readAll(0)).toEqual(bytes());
    expect(await s.readAll(1)).toEqual(bytes(7));
  });

  it('readAll is short at the end, the next read says END_OF_FILE', async () => {
    const read = s.readAll(6);
    carrier.arrived = [1, 2];
    carrier.end = true;
    s.handle({ kind: 'readable' });
    expect(await read).toEqual(bytes(1, 2));
    await expect(s.readAll(1)).rejects.toMatchObject({ code: 'END_OF_FILE' });
    await expect(s.read()).rejects.toMatchObject({ code: 'END_OF_FILE' });
    await expect(s.read()).rejects.toBeInstanceOf(RemoteError);
  });

  it('readAll without a byte before the end is END_OF_FILE at once', async () => {
    carrier.end = true;
    await expect(s.readAll(6)).rejects.toMatchObject({ code: 'END_OF_FILE' });
  });

  it('allows one read at a time', async () => {
    const read = s.read();
    await expect(s.read()).rejects.toMatchObject({ code: 'OPERATION_IN_PROGRESS' });
    await expect(s.readAll(3)).rejects.toMatchObject({ code: 'OPERATION_IN_PROGRESS' });
    carrier.arrived = [1];
    s.handle({ kind: 'readable' });
    expect(await read).toEqual(bytes(1));
  });

  it.each([0, -1, Number.NaN])('refuses to read at most %s bytes', async (max) => {
    await expect(s.read(max)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('refuses to read all of %s bytes', async (length) => {
    await expect(s.readAll(length)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('copies nothing without a pending read', () => {
    carrier.arrived = [1, 2, 3];
    s.handle({ kind: 'readable' });
    expect(carrier.arrived).toEqual([1, 2, 3]);
  });
});

describe('writing', () => {
  it('resolves when all is buffered, and waits for capacity', async () => {
    carrier.room = 2;
    const write = s.write(bytes(1, 2, 3, 4, 5));
    expect(await settledLater(write)).toBe(false);
    expect(carrier.sent).toEqual([1, 2]);
    carrier.room = 1;
    s.handle({ kind: 'writable' });
    expect(await settledLater(write)).toBe(false);
    carrier.room = 10;
    s.handle({ kind: 'writable' });
    await write;
    expect(carrier.sent).toEqual([1, 2, 3, 4, 5]);
    expect(s.stats()).toEqual({ bytesRead: 0, bytesWritten: 5, transport: null });
  });

  it('of no bytes resolves at once', async () => {
    carrier.room = 0;
    await s.write(bytes());
  });

  it('allows one write at a time, and no close while it runs', async () => {
    carrier.room = 0;
    const write = s.write(bytes(1));
    await expect(s.write(bytes(2))).rejects.toMatchObject({ code: 'OPERATION_IN_PROGRESS' });
    await expect(s.close()).rejects.toMatchObject({ code: 'OPERATION_IN_PROGRESS' });
    carrier.room = 5;
    s.handle({ kind: 'writable' });
    await write;
    expect(carrier.sent).toEqual([1]);
  });
});

describe('close', () => {
  it('ends our direction only and resolves when acknowledged', async () => {
    const close = s.close();
    expect(carrier.calls).toEqual(['finish']);
    expect(await settledLater(close)).toBe(false);
    await expect(s.close()).rejects.toMatchObject({ code: 'OPERATION_IN_PROGRESS' });
    await expect(s.write(bytes(1))).rejects.toMatchObject({ code: 'CLOSED' });
    carrier.arrived = [5];
    expect(await s.read()).toEqual(bytes(5));
    s.handle({ kind: 'finished' });
    await close;
    await s.close();
    await expect(s.write(bytes(1))).rejects.toMatchObject({ code: 'CLOSED' });
    expect(s.ended).toBe(false);
    carrier.end = true;
    await expect(s.read()).rejects.toMatchObject({ code: 'END_OF_FILE' });
    expect(s.ended).toBe(true);
    expect(carrier.calls).toEqual(['finish', 'ended 4']);
  });
});

describe('abort', () => {
  it('ends both directions and fails pending calls', async () => {
    carrier.room = 0;
    const outstanding = [s.read(), s.write(bytes(1))];
    s.abort();
    s.abort();
    for (const promise of outstanding) await expect(promise).rejects.toMatchObject(aborted);
    expect(carrier.calls).toEqual([`stop ${StreamCode.ABORTED}`, `reset ${StreamCode.ABORTED}`, 'ended 4']);
    for (const later of [() => s.read(), () => s.write(bytes(1)), () => s.close()]) await expect(later()).rejects.toMatchObject(aborted);
  });

  it('fails a close that waits for its acknowledgement', async () => {
    const close = s.close();
    s.abort(StreamCode.SERVICE_FAILED);
    await expect(close).rejects.toMatchObject(aborted);
    expect(carrier.calls).toContain(`reset ${StreamCode.SERVICE_FAILED}`);
  });

  it('after an acknowledged close only stops the reading', async () => {
    const close = s.close();
    s.handle({ kind: 'finished' });
    await close;
    s.abort();
    expect(carrier.calls).toEqual(['finish', `stop ${StreamCode.ABORTED}`, 'ended 4']);
  });

  it('by the peer ends each direction with its own event', async () => {
    carrier.room = 0;
    const read = s.read();
    const write = s.write(bytes(1));
    s.handle({ kind: 'reset', code: StreamCode.ABORTED });
    await expect(read).rejects.toMatchObject(aborted);
    expect(await settledLater(write)).toBe(false);
    s.handle({ kind: 'stopped', code: StreamCode.ABORTED });
    await expect(write).rejects.toMatchObject(aborted);
    expect(s.ended).toBe(true);
  });

  it('by the peer is reported to a writer that has nothing to write, unless all of it had been acknowledged', async () => {
    for (const isFirst of [true, false]) {
      const stopped = vi.fn();
      const stream = new Stream(carrier, 7, 5);
      stream.onStopped = stopped;
      const closing = stream.close().catch(() => {});
      const events = [{ kind: 'stopped', code: StreamCode.ABORTED } as const, { kind: 'finished' } as const];
      for (const event of isFirst ? events : events.reverse()) stream.handle(event);
      await closing;
      expect(stopped.mock.calls).toEqual(isFirst ? [[expect.objectContaining(aborted)]] : []);
    }
  });

  it('by a peer that only stops reading leaves the data in flight', async () => {
    s.handle({ kind: 'stopped', code: StreamCode.NO_ERROR });
    await expect(s.write(bytes(1))).rejects.toMatchObject(aborted);
    carrier.arrived = [1];
    expect(await s.read()).toEqual(bytes(1));
  });
});

it('fails all calls with the session', async () => {
  carrier.room = 0;
  const outstanding = [s.readAll(10), s.write(bytes(1))];
  s.fail(new RemoteError('STOPPED', 'gone'));
  for (const promise of outstanding) await expect(promise).rejects.toMatchObject({ code: 'STOPPED', message: 'gone' });
  expect(carrier.calls).toEqual(['ended 4']); // nothing is sent for a stream whose session has ended
});

describe('WHATWG streams', () => {
  it('readable returns the chunks and closes at the end', async () => {
    carrier.arrived = [1, 2];
    const reader = s.readable.getReader();
    expect(await reader.read()).toEqual({ done: false, value: bytes(1, 2) });
    const next = reader.read();
    carrier.arrived = [3];
    carrier.end = true;
    s.handle({ kind: 'readable' });
    expect(await next).toEqual({ done: false, value: bytes(3) });
    expect(await reader.read()).toEqual({ done: true, value: undefined });
    expect(s.readable).toBe(s.readable);
  });

  it("readable fills a reader's own buffer with what has arrived, at least one byte, and closes at the end", async () => {
    carrier.arrived = [1, 2];
    const reader = s.readable.getReader({ mode: 'byob' });
    const { value } = await reader.read(new Uint8Array(new ArrayBuffer(8), 2, 5));
    expect([value, value?.byteOffset, value?.buffer.byteLength]).toEqual([bytes(1, 2), 2, 8]);
    const next = reader.read(new Uint8Array(value!.buffer));
    expect(await settledLater(next)).toBe(false);
    carrier.arrived = [3, 4, 5];
    s.handle({ kind: 'readable' });
    expect(await next).toEqual({ done: false, value: bytes(3, 4, 5) });
    carrier.arrived = [6, 7];
    expect((await reader.read(new Uint8Array(1))).value).toEqual(bytes(6));
    expect((await reader.read(new Uint8Array(1))).value).toEqual(bytes(7));
    const last = reader.read(new Uint8Array(4));
    carrier.end = true;
    s.handle({ kind: 'readable' });
    expect(await last).toEqual({ done: true, value: bytes() });
    expect(s.stats().bytesRead).toBe(7);
  });

  it.each(['default', 'byob'] as const)('a read of readable in the mode %s ends with its cancellation', async (mode) => {
    const reader = mode === 'byob' ? s.readable.getReader({ mode }) : s.readable.getReader();
    const read =
      mode === 'byob' ? (reader as ReadableStreamBYOBReader).read(new Uint8Array(4)) : (reader as ReadableStreamDefaultReader).read();
    await reader.cancel();
    expect(await read).toEqual({ done: true, value: undefined });
    expect(carrier.calls).toEqual([`stop ${StreamCode.NO_ERROR}`]);
  });

  it('readable fails with the abort of the peer', async () => {
    const read = s.readable.getReader().read();
    s.handle({ kind: 'reset', code: StreamCode.ABORTED });
    await expect(read).rejects.toMatchObject(aborted);
  });

  it('cancelling the readable leaves the writing direction alone', async () => {
    await s.readable.cancel();
    expect(carrier.calls).toEqual([`stop ${StreamCode.NO_ERROR}`]);
    await s.write(bytes(1));
    expect(carrier.sent).toEqual([1]);
  });

  it('writable writes, waits for capacity and closes', async () => {
    carrier.room = 2;
    const writer = s.writable.getWriter();
    const written = writer.write(bytes(1, 2, 3));
    const closed = writer.close();
    expect(await settledLater(written)).toBe(false);
    carrier.room = 5;
    s.handle({ kind: 'writable' });
    await written;
    await settledLater(closed);
    expect(carrier.calls).toEqual(['finish']);
    s.handle({ kind: 'finished' });
    await closed;
    expect(carrier.sent).toEqual([1, 2, 3]);
  });

  it('aborting the writable resets our direction only', async () => {
    await s.writable.abort();
    expect(carrier.calls).toEqual([`reset ${StreamCode.ABORTED}`]);
    carrier.arrived = [1];
    expect(await s.read()).toEqual(bytes(1));
  });
});

describe('a stream that we open', () => {
  function opening(id?: number) {
    const carrier = new TestCarrier();
    const s = new Stream(carrier, 7);
    if (id !== undefined) s.begin(id);
    return { carrier, s };
  }

  it('accepts bytes and the end before it has an id, and sends them when it gets one', async () => {
    const { carrier, s } = opening();
    const write = s.write(bytes(1, 2, 3));
    expect(await settledLater(write)).toBe(false);
    s.begin(8);
    await write;
    expect([carrier.sent, carrier.calls]).toEqual([[1, 2, 3], []]);
    const { carrier: other, s: short } = opening();
    const close = short.close();
    short.begin(12);
    expect(other.calls).toEqual(['finish']);
    expect(await settledLater(close)).toBe(false);
  });

  it('reads nothing before it is accepted', async () => {
    const { carrier, s } = opening(4);
    carrier.arrived = [9];
    const read = s.read();
    s.handle({ kind: 'readable' });
    expect(await settledLater(read)).toBe(false);
    s.handle({ kind: 'accepted' });
    s.handle({ kind: 'readable' });
    expect(await read).toEqual(bytes(9));
    await s.opened;
  });

  it('is not closed before acceptance, even when all was acknowledged', async () => {
    const { s } = opening(4);
    const close = s.close();
    s.handle({ kind: 'finished' });
    expect(await settledLater(close)).toBe(false);
    s.handle({ kind: 'accepted' });
    await close;
  });

  it.each([['before'], ['after']])('a refusal %s all was acknowledged fails all calls with its code', async (when) => {
    const { carrier, s } = opening(4);
    const outcomes = Promise.allSettled([s.opened, s.readAll(10), s.close()]);
    if (when === 'after') s.handle({ kind: 'finished' });
    s.handle({ kind: 'reset', code: StreamCode.FORBIDDEN });
    s.handle({ kind: 'stopped', code: StreamCode.FORBIDDEN });
    const codes = (await outcomes).map((outcome) => outcome.status === 'rejected' && outcome.reason.code);
    expect(codes).toEqual(['FORBIDDEN', 'FORBIDDEN', 'FORBIDDEN']);
    await expect(s.write(bytes(1))).rejects.toMatchObject({ code: 'FORBIDDEN' });
    expect(carrier.calls).toEqual(['finish', `reset ${StreamCode.FORBIDDEN}`, `stop ${StreamCode.FORBIDDEN}`, 'ended 4']);
  });

  it('aborted before it has an id leaves no trace on the wire', async () => {
    const { carrier, s } = opening();
    const write = s.write(bytes(1));
    s.abort();
    await expect(write).rejects.toMatchObject(aborted);
    await expect(s.opened).rejects.toMatchObject(aborted);
    expect(carrier.calls).toEqual(['ended -1']);
  });
});
