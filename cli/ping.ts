/** `svc ping`: response time of a device, and the path, until Ctrl-C. */
import { Argument, Command, Option } from 'commander';
import { asSvcError } from '../protocol/errors/index.ts';
import { type OpenConnection, withConnection } from './client/open.ts';
import { milliseconds, roundTrip } from './client/round-trip.ts';
import { oneDevice, type TargetOptions, withTarget } from './client/target.ts';
import { followWay, wayOf } from './client/way.ts';
import { integer, seconds } from './frame/arguments.ts';
import { CommandError, describe } from './frame/errors.ts';
import type { Output } from './frame/output.ts';

interface PingOptions extends TargetOptions {
  count?: number;
  /** ms */
  interval: number;
}

/** ms for one answer. */
const ANSWER = 5_000;

/** The command `svc ping`. */
export function pingCommand(): Command {
  const command = new Command('ping')
    .description('measure the response time of a device, and show the path')
    .addArgument(new Argument('[device]', 'as --device'))
    .addOption(new Option('--count <n>', 'end after this number; default: at Ctrl-C').argParser(number))
    .addOption(new Option('--interval <seconds>', 'time between two requests').argParser(seconds).default(1_000, '1'));
  command.addHelpText('after', '\nExit code 0 when the device answered at least once.');
  return withTarget(command).action((device: string | undefined, options: PingOptions) =>
    withConnection(oneDevice(device, options), (opened) => pingDevice(opened, options), { untilStopped: true }),
  );
}

async function pingDevice(
  { connection, environment: { clock }, output, signal, device }: OpenConnection,
  options: PingOptions,
): Promise<void> {
  output.note(`${device}, ${wayOf(connection).text}`);
  followWay(connection, (change) => output.note(change));
  await ping({
    ...options,
    output,
    signal,
    device,
    ask: () => roundTrip(connection, clock, ANSWER, signal),
    way: () => wayOf(connection),
    isConnected: () => connection.isConnected,
    pause: (ms) =>
      new Promise((resolve) => {
        const cancel = clock.schedule(ms, done);
        function done(): void {
          cancel();
          signal.removeEventListener('abort', done);
          resolve();
        }
        signal.addEventListener('abort', done, { once: true });
      }),
  });
}

/** Inputs of `ping`. */
export interface PingFrame {
  readonly count?: number | undefined;
  /** ms between two requests. */
  readonly interval: number;
  readonly device: string;
  readonly output: Output;
  readonly signal: AbortSignal;
  /** One round trip in ms. @throws when there is no answer */
  readonly ask: () => Promise<number>;
  readonly way: () => { readonly over: string; readonly text: string };
  readonly isConnected: () => boolean;
  /** Resolves early when the signal fires. */
  readonly pause: (ms: number) => Promise<void>;
}

/** @throws CommandError without any answer, and when the connection ended */
export async function ping({ count, interval, device, output, signal, ask, way, isConnected, pause }: PingFrame): Promise<void> {
  const times = new Times();
  let sent = 0;
  let problem = '';
  while (!signal.aborted && sent < (count ?? Number.POSITIVE_INFINITY) && isConnected()) {
    sent++;
    const taken = await ask().catch((error: unknown) => {
      if (signal.aborted) return undefined;
      problem = describe(error);
      output.result({ event: 'lost', sequence: sent, error: asSvcError(error).code }, `${sent}  ${problem}`);
      return undefined;
    });
    if (taken !== undefined) {
      times.add(taken);
      const { over, text } = way();
      output.result({ event: 'answer', sequence: sent, ms: rounded(taken), over }, `${sent}  ${milliseconds(taken)}  ${text}`);
    } else if (signal.aborted) {
      sent--;
    }
    if (sent !== count) await pause(Math.max(0, interval - (taken ?? 0)));
  }
  summarize(output, sent, times);
  if (!isConnected() && !signal.aborted) throw new CommandError(`the connection to ${device} ended${problem === '' ? '' : `: ${problem}`}`);
  if (times.count === 0) throw new CommandError(`${device} did not answer`);
}

/** Statistics of round trips over a run that may take days. */
class Times {
  count = 0;
  sum = 0;
  min = Number.POSITIVE_INFINITY;
  max = 0;

  add(time: number): void {
    this.count++;
    this.sum += time;
    this.min = Math.min(this.min, time);
    this.max = Math.max(this.max, time);
  }
}

function summarize(output: Output, sent: number, { count, sum, min, max }: Times): void {
  const document = { event: 'summary', sent, answered: count };
  if (count === 0) {
    output.result(document, `${sent} sent, none answered`);
    return;
  }
  const avg = sum / count;
  output.result(
    { ...document, min: rounded(min), avg: rounded(avg), max: rounded(max) },
    `${sent} sent, ${count} answered; round trip min ${milliseconds(min)}, avg ${milliseconds(avg)}, max ${milliseconds(max)}`,
  );
}

function rounded(time: number): number {
  return Math.round(time * 1000) / 1000;
}

function number(text: string): number {
  return integer(text, 1, 1_000_000, 'expected a number from 1 to 1000000');
}
