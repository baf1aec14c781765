/** Standard input and output as a file, and the table of the list. */
import { PassThrough, Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { standardInput, standardOutput } from '../../../cli/files/standard-streams.ts';
import { amount, amountOf } from '../../../cli/frame/progress.ts';

test('standard input that is stopped ends a pending read, and raises no error without a reader', async () => {
  const input = new PassThrough() as unknown as NodeJS.ReadStream;
  const { pieces, stop } = standardInput(input);
  const reading = (async () => {
    for await (const _ of pieces);
  })();
  stop(new Error('enough'));
  await expect(reading).rejects.toThrow('enough');
  const unread = new PassThrough() as unknown as NodeJS.ReadStream;
  standardInput(unread).stop(new Error('enough'));
  await new Promise((resolve) => unread.once('close', resolve));
});

function output(isTTY: boolean): { stream: Writable & { isTTY: boolean }; written: () => Buffer } {
  const chunks: Buffer[] = [];
  const stream = new Writable({ write: (chunk, _, done) => done(void chunks.push(Buffer.from(chunk)) as undefined) });
  return { stream: Object.assign(stream, { isTTY }), written: () => Buffer.concat(chunks) };
}

test('a pipe gets the bytes, a terminal nothing that could rewrite its screen', async () => {
  const bytes = Buffer.from('é\u001b[2Jx\n');
  const [pipe, terminal] = [output(false), output(true)];
  for (const { stream } of [pipe, terminal]) {
    const write = standardOutput(stream);
    for (const byte of bytes) await write(Uint8Array.of(byte));
  }
  expect(pipe.written().equals(bytes)).toBe(true);
  expect(terminal.written().toString()).toBe('é [2Jx\n');
});

test('a failed write is the error', async () => {
  const broken = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) });
  broken.on('error', () => {});
  await expect(standardOutput(broken)(Uint8Array.of(1))).rejects.toThrow('EPIPE');
});

test('amounts have units', () => {
  expect([amount(5), amount(1 << 20), amountOf(5, 10), amountOf(5, 3 << 20)]).toEqual([
    '5 bytes',
    '1.0 MiB',
    '5 of 10 bytes',
    '0.0 of 3.0 MiB',
  ]);
});
