/** `svc stream`: a file to a device, or from it, over a byte stream, checked by SHA-256. The device is one started with `svc device`. */
import { stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { Command } from 'commander';
import { type Opened, withConnection } from './client/open.ts';
import { type TargetOptions, withTarget } from './client/target.ts';
import { showWay } from './client/way.ts';
import { FileTransferError, isFileName } from './file-protocol.ts';
import { downloadFile, type TransferOptions, type TransferResult, uploadFile } from './file-transfer.ts';
import { CommandError, UsageError } from './frame/errors.ts';
import type { Output } from './frame/output.ts';
import { type Progress, progress } from './frame/progress.ts';

/** The command `svc stream`. */
export function streamCommand(): Command {
  const send = new Command('send')
    .description('send a file to a device')
    .argument('<file>', 'file to send')
    .argument('[name]', 'its name on the device (default: that of the file); a file that is there is replaced')
    .action(sendAction);
  const receive = new Command('receive')
    .description('fetch a file from a device')
    .argument('<name>', 'its name on the device')
    .argument('[file]', 'where to put it (default: that name here); a file that is there is replaced')
    .action(receiveAction);
  return new Command('stream')
    .description('send a file to a device or fetch one, over a byte stream')
    .addCommand(withTarget(send))
    .addCommand(withTarget(receive));
}

async function sendAction(file: string, name: string | undefined, options: TargetOptions): Promise<void> {
  const remote = checkedName(name ?? basename(file));
  if (!(await stat(file)).isFile()) throw new UsageError(`${file} is not a file`);
  await withConnection(options, (opened) =>
    run(opened, `sending ${remote}`, (transfer) => uploadFile(opened.connection, file, remote, transfer)),
  );
}

async function receiveAction(name: string, file: string | undefined, options: TargetOptions): Promise<void> {
  const local = resolve(file ?? checkedName(name));
  checkedName(name);
  await withConnection(options, (opened) =>
    run(opened, `receiving ${name}`, (transfer) => downloadFile(opened.connection, name, local, transfer)),
  );
}

async function run(
  { connection, output }: Opened,
  label: string,
  transfer: (options: TransferOptions) => Promise<TransferResult>,
): Promise<void> {
  showWay(connection, output);
  const began = performance.now();
  const { bytes, sha256 } = await withProgress(output, label, transfer);
  const seconds = (performance.now() - began) / 1000;
  const rate = (bytes / 1e6 / seconds).toFixed(1);
  output.result({ bytes, sha256, seconds }, `${bytes} bytes in ${seconds.toFixed(2)} s (${rate} MB/s), SHA-256 ${sha256} at both ends`);
}

/** The transfer with a bar, which is gone again when it ends. */
async function withProgress(
  output: Output,
  label: string,
  transfer: (options: TransferOptions) => Promise<TransferResult>,
): Promise<TransferResult> {
  let bar: Progress | undefined;
  const onProgress = (done: number, total: number): void => {
    bar ??= progress(output, label, total);
    bar.update(done);
  };
  try {
    return await transfer({ onProgress });
  } catch (error) {
    throw error instanceof FileTransferError ? new CommandError(error.message) : error;
  } finally {
    bar?.stop();
  }
}

function checkedName(name: string): string {
  if (!isFileName(name))
    throw new UsageError(
      `${JSON.stringify(name)} cannot be a name on the device: it takes 1 to 128 letters, digits, ".", "-" and "_", not beginning with "."`,
    );
  return name;
}
