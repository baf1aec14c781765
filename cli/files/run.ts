/**
 * Shows a transfer of `svc stream` to a person: a progress bar, and after an interruption one line with the amount
 * transferred and a remedy.
 */
import type { OpenConnection } from '../client/open.ts';
import { showWay } from '../client/way.ts';
import { CommandError, describe, Interrupted, UsageError } from '../frame/errors.ts';
import { amount, type Progress, progress } from '../frame/progress.ts';
import { FileTransferError } from './protocol.ts';
import type { TransferOptions, TransferResult, TransferStart } from './stream.ts';

/** Progress of a transfer. */
export interface TransferState {
  /** Undefined until content has moved. */
  readonly beginning: TransferStart | undefined;
  readonly done: number;
}

export interface Run {
  /** Null shows neither a bar nor the path: standard output or input carries the file. */
  readonly label: string | null;
  readonly replace: boolean;
  readonly transfer: (options: TransferOptions) => Promise<TransferResult>;
  /** Describes the rest of an interrupted transfer, with a remedy. */
  readonly left: (where: TransferState) => Promise<string> | string;
  /** A better text for an error, if there is one. */
  readonly reword: (error: FileTransferError) => string;
}

/** Runs a transfer to its end. @throws CommandError, Interrupted: one line */
export async function runTransfer(
  { connection, output, signal }: OpenConnection,
  run: Run,
): Promise<{ result: TransferResult; seconds: number }> {
  if (run.label !== null) showWay(connection, output);
  const began = performance.now();
  let bar: Progress | undefined;
  let beginning: TransferStart | undefined;
  let done = 0;
  const onBegin = (given: TransferStart): void => {
    beginning = given;
    done = given.offset;
    bar?.stop();
    if (run.label !== null && given.total !== undefined) bar = progress(output, run.label, given.total, given.offset);
  };
  const onProgress = (bytes: number): void => {
    done = bytes;
    bar?.update(bytes);
  };
  try {
    const result = await run.transfer({ onBegin, onProgress, signal, replace: run.replace });
    return { result, seconds: (performance.now() - began) / 1000 };
  } catch (error) {
    throw await ended(error, run, { beginning, done });
  } finally {
    bar?.stop();
  }
}

/** The error of a failed transfer, with what remains of it. */
async function ended(error: unknown, run: Run, where: TransferState): Promise<unknown> {
  if (error instanceof UsageError || error instanceof CommandError) return error;
  if (error instanceof FileTransferError && error.code !== 'INVALID') return new CommandError(run.reword(error));
  const left = await run.left(where);
  if (error instanceof Interrupted) return new Interrupted(`interrupted: ${left}`);
  return new CommandError(`${error instanceof FileTransferError ? error.message : describe(error)}; ${left}`);
}

/** The result for a person. */
export function resultText({ bytes, sha256, resumedFrom }: TransferResult, seconds: number): string {
  const rate = ((bytes - resumedFrom) / 1e6 / seconds).toFixed(1);
  const resumed = resumedFrom === 0 ? '' : `, resumed at ${amount(resumedFrom)}`;
  return `${bytes} bytes in ${seconds.toFixed(2)} s (${rate} MB/s${resumed}), SHA-256 ${sha256} at both ends`;
}
