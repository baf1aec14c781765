/**
 * `svc coap … --observe`: prints each answer of a resource (RFC 7641), until the count is reached, Ctrl-C, or the
 * device ends it.
 */
import type { Answer, Connection, ObserveOptions } from '../../client/node.ts';
import { formatStatus } from '../../protocol/coap/index.ts';
import { CommandError } from '../frame/errors.ts';
import type { Output } from '../frame/output.ts';
import { payloadDocument, payloadText, printPayload } from './payload.ts';

export interface ObserveFrame {
  readonly output: Output;
  readonly signal: AbortSignal;
  /** Number of answers after which it ends; undefined: no limit. */
  readonly count: number | undefined;
  readonly raw: boolean;
  /** A round trip to the device, after which everything sent before has arrived. */
  readonly settled: () => Promise<unknown>;
}

/**
 * Prints the answers. Cancels the observation at the device before it returns.
 * @throws CommandError for a 4.xx or 5.xx answer, and for a resource that cannot be observed; the error that ended the
 *   connection
 */
export async function observe(
  connection: Pick<Connection, 'observe'>,
  path: string,
  request: ObserveOptions,
  { output, signal, count = Number.POSITIVE_INFINITY, raw, settled }: ObserveFrame,
): Promise<void> {
  let printed = 0;
  let last: Answer | undefined;
  for await (const answer of connection.observe(path, request)) {
    last = answer;
    print(answer, output, raw);
    printed++;
    if (printed >= count) break;
  }
  const wanted = signal.aborted || printed >= count;
  if (wanted && last?.sequence !== undefined) await settled().catch(() => {});
  if (last === undefined || (wanted && (last.ok || last.sequence !== undefined))) return;
  if (!last.ok) throw new CommandError(`the device answered ${formatStatus(last.status)}${textOf(last)}`);
  throw new CommandError('the resource was printed once: it cannot be observed, or the device is at its limit of observers');
}

function print(answer: Answer, output: Output, raw: boolean): void {
  const { status, format, sequence } = answer;
  if (output.json) output.result({ status, contentFormat: format, observe: sequence, ...payloadDocument(answer) }, '');
  else if (answer.ok) printPayload(answer, output, raw);
}

function textOf(answer: Answer): string {
  const text = payloadText(answer);
  return text === undefined ? '' : `: ${text}`;
}
