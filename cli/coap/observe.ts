/** `svc coap … --observe`: each answer of a resource as it comes (RFC 7641), until so many have come, Ctrl-C, or the device ends it. */
import type { Coap, CoapResponse, Observation, SvcError } from '../../client/node.ts';
import { formatStatus } from '../../protocol/coap/index.ts';
import { CommandError } from '../frame/errors.ts';
import type { Output } from '../frame/output.ts';
import { payloadDocument, payloadText, printPayload } from './payload.ts';

export interface ObserveFrame {
  readonly output: Output;
  readonly signal: AbortSignal;
  /** Answers after which it ends; undefined: none. */
  readonly count: number | undefined;
  readonly raw: boolean;
  /** A round trip to the device, which shows that what was sent before has arrived. */
  readonly settled: () => Promise<unknown>;
}

/**
 * Prints the answers. Before it returns, the device was told that no more are wanted.
 * @throws CommandError for an answer of 4.xx or 5.xx, and for a resource that cannot be observed; what the connection ended with
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
  throw new CommandError('the resource was shown once: the device does not let it be observed, or has no room for another observer');
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
