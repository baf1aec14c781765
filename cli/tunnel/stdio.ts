/**
 * `svc tunnel --stdio`: one connection to a TCP service over standard input and output, as required by ssh's
 * ProxyCommand. Standard output carries only its bytes. The end of one direction is passed on, and the other continues;
 * it is over when both have ended.
 */
import { closeSync, openSync } from 'node:fs';
import { devNull } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { type Connection, type ForwardedService, SvcError } from '../../client/node.ts';
import { acknowledged, type ByteStream, nextChunk } from '../../platform/node/index.ts';
import { CommandError } from '../frame/errors.ts';
import { missingService } from './offered.ts';

/** Carries both directions until they have ended. @throws CommandError when the device or the service aborts */
export async function carryStandardStreams(connection: Connection, service: ForwardedService): Promise<void> {
  const { record } = await connection.findService('tcp', service.id).catch(async (error: unknown) => {
    if (!(error instanceof SvcError) || error.code !== 'NOT_FOUND') throw error;
    throw await missingService(connection, [service], error.message);
  });
  const stream = connection.openStream(record.streamPort);
  const { opened } = stream;
  try {
    await Promise.all([opened, carry(stream, { input: process.stdin, output: process.stdout, end: endStandardOutput })]);
  } catch (error) {
    // Carrying fails with the error of opening, or with a consequence of it.
    const reason = await opened.then(
      () => error,
      (first: unknown) => first,
    );
    throw new CommandError(`${service.id}: ${reason instanceof Error ? reason.message : String(reason)}`);
  }
}

/**
 * The end of `input` ends the stream's direction to the device; that of the other one calls `end`.
 * @throws the error of either side, except for output without a reader (EPIPE); then both are over
 */
export async function carry(
  stream: ByteStream,
  { input, output, end }: { readonly input: Readable; readonly output: Writable; readonly end: () => void | Promise<void> },
): Promise<void> {
  const answer = toOutput(stream, output).then(end);
  try {
    await Promise.all([toDevice(stream, input), answer]);
  } catch (error) {
    // What the other side sent before it broke is passed on, to the last byte.
    if (error instanceof SvcError) await answer.catch(() => {});
    else await acknowledged(stream).catch(() => {});
    stream.abort();
    input.destroy();
    // The reader of the output has ended, such as ssh: that is the end of the session, no fault.
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  }
}

async function toDevice(stream: ByteStream, input: Readable): Promise<void> {
  for await (const chunk of input) await stream.write(chunk as Buffer);
  await stream.close();
}

async function toOutput(stream: ByteStream, output: Writable): Promise<void> {
  for (;;) {
    const data = await nextChunk(stream);
    if (data === null) return;
    await written(output, data);
  }
}

/** Writes a piece; resolves when it has left this process, so that only one is held. */
function written(output: Writable, data: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => output.write(data, (error) => (error ? reject(error) : resolve())));
}

/** Node keeps the descriptor of standard output open as long as the process lives. */
function endStandardOutput(): void {
  if (process.stdout.isTTY !== true) endDescriptor(1);
}

/**
 * Signals the end to the reader of a descriptor while the process continues. Its number is taken again at once, so that
 * no socket gets it.
 */
export function endDescriptor(descriptor: number): void {
  closeSync(descriptor);
  openSync(devNull, 'w');
}
