/**
 * What a CoAP request from outside asks of the device, or why it is refused: the options that pass, as RFC 7252 §5.7 has it for a proxy that stands
 * in for the device (§5.7.3).
 *
 *     Uri-Host, Uri-Port             read over: there is one device here
 *     Uri-Path, Content-Format       pass
 *     Observe, Block1, Block2, Size  are the gateway's own business, on either side apart
 *     Accept                         a GET whose answer has another format is answered 4.06; 4.02 with other methods, which act before they answer
 *     Uri-Query                      4.00, as the device has it
 *     Proxy-Uri, Proxy-Scheme        5.05
 *     ETag, No-Response              read over
 *     others                         4.02 if critical, or unsafe to forward unknown (§5.4.2); else read over
 */
import {
  type CoapMessage,
  type CoapMethod,
  type CoapReply,
  methodOfCode,
  OptionNumber,
  Status,
  textReply,
} from '../../protocol/coap/index.ts';
import { isCritical, sortOptions, uintOption } from '../../protocol/coap/options.ts';
import { acceptedInRequests, readRequest } from '../../protocol/coap/request.ts';

/** A request the device can be asked. */
export interface DeviceRequest {
  readonly method: CoapMethod;
  readonly path: string;
  readonly contentFormat: number | null;
  readonly payload: Uint8Array;
  /** The only content format that is taken. */
  readonly accept: number | undefined;
  /** 0 registers, 1 deregisters (RFC 7641 §2). */
  readonly observe: number | undefined;
}

/** RFC 7967 §2: elective, unsafe, and an answer is never wrong. */
const NO_RESPONSE = 258;

const accepted: ReadonlySet<number> = new Set([...acceptedInRequests, OptionNumber.ACCEPT]);
const known: ReadonlySet<number> = new Set([...Object.values(OptionNumber), NO_RESPONSE]);

/** Reads a request; a reply when it is refused. Never throws. */
export function deviceRequest(message: CoapMessage): DeviceRequest | CoapReply {
  const method = methodOfCode(message.code);
  if (method === undefined) return textReply(Status.METHOD_NOT_ALLOWED, 'The method is not supported');
  const refused = refusal(message, method);
  if (refused !== undefined) return refused;
  const head = readRequest(message, accepted);
  if ('refused' in head) return textReply(head.refused, head.text);
  return {
    method,
    path: head.path,
    contentFormat: head.contentFormat ?? null,
    payload: message.payload,
    accept: uintOption(sortOptions(message.options, accepted), OptionNumber.ACCEPT),
    observe: method === 'GET' ? head.observe : undefined,
  };
}

function refusal({ options }: CoapMessage, method: CoapMethod): CoapReply | undefined {
  for (const { number } of options) {
    if (number === OptionNumber.PROXY_URI || number === OptionNumber.PROXY_SCHEME)
      return textReply(Status.PROXYING_NOT_SUPPORTED, 'This gateway reaches one device only');
    if (number === OptionNumber.URI_QUERY) return textReply(Status.BAD_REQUEST, `Critical option ${number} is not supported`);
    const passes = accepted.has(number) && (number !== OptionNumber.ACCEPT || method === 'GET');
    if (!passes && (isCritical(number) || (isUnsafe(number) && !known.has(number))))
      return textReply(Status.BAD_OPTION, `Option ${number} is not supported`);
  }
  return undefined;
}

/** RFC 7252 §5.4.6. */
function isUnsafe(number: number): boolean {
  return (number & 2) !== 0;
}
