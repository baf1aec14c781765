/**
 * `svc coap … --observe`: prints each answer of a resource (RFC 7641), until the count is reached, Ctrl-C, or the
 * device ends it.
 */
import type { Coap, CoapResponse, Observation, SvcError } from '../../client/node.ts';
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
export async function observe(coap: Pick<Coap, 'observe'>, { output, signal, count, raw, settled }: ObserveFrame): Promise<void> {
  let observation: Observation | undefined;
  let left = count ?? Number.POSITIVE_INFINITY;
  let last: CoapResponse | undefined;
  const wanted = await new Promise<boolean>((resolve, reject) => {
    signal.addEventListener('abort', () => resolve(true), { once: true });
    observation = coap.observe({
      onResponse: (response) => {
        last = response;
        if (left <= 0) return;
        print(response, output, raw);
        left--;
        if (left <= 0) resolve(true);
      },
      onEnd: (error: SvcError | null) => (error === null ? resolve(false) : reject(error)),
    });
    if (signal.aborted) resolve(true);
  });
  if (wanted && last?.observe !== undefined) {
    observation?.cancel();
    await settled().catch(() => {});
    return;
  }
  observation?.cancel();
  if (last === undefined || (wanted && last.status < 300)) return;
  if (last.status >= 300) throw new CommandError(`the device answered ${formatStatus(last.status)}${textOf(last)}`);
  throw new CommandError('the resource was printed once: it cannot be observed, or the device is at its limit of observers');
}

function print(response: CoapResponse, output: Output, raw: boolean): void {
  const { status, contentFormat, observe: sequence } = response;
  if (output.json) output.result({ status, contentFormat, observe: sequence, ...payloadDocument(response) }, '');
  else if (status < 300) printPayload(response, output, raw);
}

function textOf(response: CoapResponse): string {
  const text = payloadText(response);
  return text === undefined ? '' : `: ${text}`;
}
