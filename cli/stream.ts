/**
 * `svc stream`: sends a file to a device, or fetches one, over a byte stream, checked by SHA-256. The device is one
 * started with `svc device`.
 */
import { lstat, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { Command } from 'commander';
import { type OpenConnection, withConnection } from './client/open.ts';
import { secretsFromInput } from './client/secrets.ts';
import { type TargetOptions, withTarget } from './client/target.ts';
import { showWay } from './client/way.ts';
import { isTaken } from './files/content.ts';
import { downloadFlow } from './files/download.ts';
import { listFiles } from './files/list.ts';
import { partOf } from './files/part-file.ts';
import { FileTransferError, isFileName } from './files/protocol.ts';
import { type Run, resultText, runTransfer, type TransferState } from './files/run.ts';
import { standardInput, standardOutput } from './files/standard-streams.ts';
import { downloadFile, uploadFile } from './files/transfer.ts';
import { upload } from './files/upload.ts';
import { CommandError, UsageError } from './frame/errors.ts';
import { amount, amountOf } from './frame/progress.ts';
import { stateOption } from './frame/shell-word.ts';
import { table } from './frame/table.ts';

interface TransferCommandOptions extends TargetOptions {
  force?: boolean;
}

/** Standard input or output. */
const STANDARD = '-';
const RESUMES =
  '\nThe same command resumes an interrupted transfer, for 24 hours after a send. A file that has changed meanwhile is transferred as a whole.';

/** The command `svc stream`. */
export function streamCommand(): Command {
  const send = new Command('send')
    .description('send a file to a device')
    .argument('<file>', 'file to send, - for standard input')
    .argument('[name]', 'its name on the device (default: that of the file)')
    .option('--force', 'replace a file of that name on the device')
    .addHelpText('after', RESUMES)
    .action(sendAction);
  const receive = new Command('receive')
    .description('fetch a file from a device')
    .argument('<name>', 'its name on the device')
    .argument('[file]', 'local file, - for standard output (default: the same name)')
    .option('--force', 'replace an existing file')
    .addHelpText('after', RESUMES)
    .action(receiveAction);
  const list = new Command('list').description('list the files that a device has').action(listAction);
  return new Command('stream')
    .description('send a file to a device or fetch one, over a byte stream')
    .addCommand(withTarget(send))
    .addCommand(withTarget(receive))
    .addCommand(withTarget(list));
}

async function sendAction(file: string, name: string | undefined, options: TransferCommandOptions): Promise<void> {
  if (file === STANDARD) return sendStandardInput(name, options);
  const remote = checkedName(name ?? basename(file));
  if (!(await stat(file)).isFile()) throw new UsageError(`${file} is not a file; - sends standard input`);
  await transferring(options, (opened) => ({
    label: `sending ${remote}`,
    replace: options.force === true,
    transfer: (transfer) => uploadFile(opened.connection, file, remote, transfer),
    left: leftByDevice,
    reword: (error) => rewordSend(error, remote),
  }));
}

async function sendStandardInput(name: string | undefined, options: TransferCommandOptions): Promise<void> {
  if (name === undefined) throw new UsageError('standard input has no name: say what to call it on the device, after -');
  const remote = checkedName(name);
  if (secretsFromInput(options) > 0) throw new UsageError('standard input can be read once: give the file there, and secrets in files');
  const flow = standardInput();
  try {
    await transferring(options, (opened) => ({
      label: null,
      replace: options.force === true,
      transfer: (transfer) => upload(opened.connection, flow, remote, transfer),
      left: ({ done }) => `${done === 0 ? 'nothing was' : `${amount(done)} were`} sent; the device keeps nothing of standard input`,
      reword: (error) => rewordSend(error, remote),
    }));
  } finally {
    flow.stop(undefined);
  }
}

/** Transfers until a signal ends it, and prints the result, unless standard output carries the file. */
function transferring(options: TargetOptions, run: (opened: OpenConnection) => Run, prints = true): Promise<void> {
  return withConnection(
    options,
    async (opened) => {
      const { result, seconds } = await runTransfer(opened, run(opened));
      if (prints) opened.output.result({ ...result, seconds }, resultText(result, seconds));
    },
    { untilStopped: true },
  );
}

/** Describes the part that the device keeps. */
function leftByDevice({ beginning, done }: TransferState): string {
  if (beginning?.total === undefined) return 'nothing was sent';
  return `${amountOf(done, beginning.total)} were sent; the device keeps its part for 24 hours, and the same command resumes`;
}

function rewordSend(error: FileTransferError, remote: string): string {
  return error.code === 'EXISTS' ? `the device has a file ${remote}: give another name, or --force to replace it` : error.message;
}

async function receiveAction(name: string, file: string | undefined, options: TransferCommandOptions): Promise<void> {
  checkedName(name);
  if (file === STANDARD) return receiveStandardOutput(name, options);
  const local = resolve(file ?? name);
  const shown = file ?? name;
  await requireTarget(shown, local, name, options.force === true);
  await transferring(options, (opened) => ({
    label: `receiving ${name}`,
    replace: options.force === true,
    transfer: (transfer) => downloadFile(opened.connection, name, local, transfer),
    left: (where) => leftHere(where, shown, local),
    reword: (error) => rewordReceive(error, shown, opened, options),
  }));
}

async function receiveStandardOutput(name: string, options: TransferCommandOptions): Promise<void> {
  if (options.json === true) throw new UsageError('--json and - exclude each other: standard output carries the file');
  if (options.force === true) throw new UsageError('--force has no effect with -: there is nothing to replace');
  await transferring(
    options,
    (opened) => ({
      label: null,
      replace: true,
      transfer: (transfer) => downloadFlow(opened.connection, name, standardOutput(), transfer),
      left: ({ done }) => `${amount(done)} went to standard output`,
      reword: (error) => rewordReceive(error, '', opened, options),
    }),
    false,
  );
}

/** Checks the target, before anything is transferred. @throws UsageError, CommandError */
async function requireTarget(shown: string, local: string, name: string, force: boolean): Promise<void> {
  const found = await stat(local).catch(() => null);
  if (found?.isDirectory()) throw new UsageError(`${shown} is a directory: name the file in it, for example ${join(shown, name)}`);
  if (found !== null && !found.isFile()) throw new UsageError(`${shown} is not a file; - is standard output`);
  if (!force && (await isTaken(local))) throw new CommandError(existsHere(shown));
}

function existsHere(shown: string): string {
  return `${shown} exists already: give another name, or --force to replace it`;
}

/** The content of a partial file. */
async function leftHere({ beginning }: TransferState, shown: string, local: string): Promise<string> {
  const size = await lstat(partOf(local)).then(
    (part) => part.size,
    () => 0,
  );
  if (size === 0) return 'nothing was received';
  const { total } = beginning ?? {};
  return `${total === undefined ? amount(size) : amountOf(size, total)} are in ${partOf(shown)}; the same command resumes`;
}

function rewordReceive(error: FileTransferError, shown: string, { device }: OpenConnection, { state }: TargetOptions): string {
  if (error.code === 'EXISTS') return existsHere(shown);
  if (error.code === 'NO_SUCH_FILE') return `${error.message}: svc stream list -d ${device}${stateOption(state)} shows what it has`;
  return error.message;
}

async function listAction(options: TargetOptions): Promise<void> {
  await withConnection(options, async ({ connection, output, signal }) => {
    showWay(connection, output);
    const files = await listFiles(connection, signal).catch((error: unknown) => {
      throw error instanceof FileTransferError ? new CommandError(error.message) : error;
    });
    const rows = files.map(({ name, size, time }) => [name, String(size), dateText(time)]);
    const document = files.map((file) => ({ ...file, time: new Date(file.time).toISOString() }));
    output.result(document, rows.length === 0 ? 'the device has no files' : table(['name', 'bytes', 'changed'], rows, [1]));
  });
}

/** To the minute, `2026-11-25 19:47Z`. */
function dateText(time: number): string {
  return `${new Date(time).toISOString().slice(0, 16).replace('T', ' ')}Z`;
}

function checkedName(name: string): string {
  if (name === '-') throw new UsageError('a file on the device needs a name: - is standard input or output here');
  if (!isFileName(name))
    throw new UsageError(
      `${JSON.stringify(name)} cannot be a name on the device: it takes 1 to 128 letters, digits, ".", "-" and "_", not beginning with "."`,
    );
  return name;
}
