/**
 * Translates a CoAP request from outside to one for the device, or refuses it. Options pass as RFC 7252 §5.7 requires
 * of a reverse proxy (§5.7.3).
 *
 *     Uri-Host, Uri-Port             ignored: there is one device here
 *     Uri-Path, Uri-Query, Content-Format   pass; where the device takes no query it answers 4.00
 *     Observe, Block1, Block2, Size  handled by the gateway, separately on each side
 *     Accept                         a GET whose answer has another format is answered 4.06;
 *                                    unrecognized with methods that act before they answer
 *     Proxy-Uri, Proxy-Scheme        5.05
 *     ETag, No-Response              ignored; an answer is always allowed (RFC 7967 §2)
 *     others                         unrecognized if critical; 4.02 if elective and unsafe to forward (§5.7.1);
 *                                    else ignored
 *
 * The same holds for an option above that is repeated where it must not be, or has a wrong length (§5.4.3, §5.4.5). A
 * request with an unrecognized critical option is answered 4.02 if it was confirmable, else rejected (§5.4.1): the
 * gateway does that, after calling `unrecognizedOption`.
 */
import {
  type CoapMessage,
  type CoapMethod,
  type CoapReply,
  checkQuery,
  methodOfCode,
  OptionNumber,
  Status,
  textReply,
} from '../../protocol/coap/index.ts';
import { isCritical, refusalText, sortOptions, uintOption } from '../../protocol/coap/options.ts';
import { acceptedInRequests, readRequest } from '../../protocol/coap/request.ts';
import { orElse } from '../../protocol/or-else.ts';

/** A request for the device. */
export interface DeviceRequest {
  readonly method: CoapMethod;
  readonly path: string;
  /** Decoded arguments. */
  readonly query: readonly string[];
  readonly contentFormat: number | null;
  readonly payload: Uint8Array;
  /** The only content format accepted. */
  readonly accept: number | undefined;
  /** 0 registers, 1 deregisters (RFC 7641 §2). */
  readonly observe: number | undefined;
}

const accepted: ReadonlySet<number> = new Set([...acceptedInRequests, OptionNumber.ACCEPT, OptionNumber.URI_QUERY]);
const known: ReadonlySet<number> = new Set(Object.values(OptionNumber));
/** Includes the options that are refused. */
const recognized: ReadonlySet<number> = new Set([...accepted, OptionNumber.PROXY_URI, OptionNumber.PROXY_SCHEME]);
const recognizedByActing: ReadonlySet<number> = new Set([...recognized].filter((number) => number !== OptionNumber.ACCEPT));

/**
 * Returns the answer to a confirmable request with an unrecognized critical option; undefined when it has none. Never
 * throws.
 */
export function unrecognizedOption({ code, options }: CoapMessage): CoapReply | undefined {
  const method = methodOfCode(code);
  const { refused } = sortOptions(options, method === undefined || method === 'GET' ? recognized : recognizedByActing);
  return refused && textReply(Status.BAD_OPTION, `Critical ${refusalText(refused)}`);
}

/** Translates a request without unrecognized critical options; a reply when it is refused. Never throws. */
export function deviceRequest(message: CoapMessage): DeviceRequest | CoapReply {
  const method = methodOfCode(message.code);
  if (method === undefined) return textReply(Status.METHOD_NOT_ALLOWED, 'The method is not supported');
  const refused = refusal(message);
  if (refused !== undefined) return refused;
  const head = readRequest(message, accepted);
  if ('refused' in head) return textReply(head.refused, head.text);
  if (!isQuery(head.query)) return textReply(Status.BAD_REQUEST, 'The query is too long');
  return {
    method,
    path: head.path,
    query: head.query,
    contentFormat: head.contentFormat ?? null,
    payload: message.payload,
    accept: uintOption(sortOptions(message.options, accepted), OptionNumber.ACCEPT),
    observe: method === 'GET' ? head.observe : undefined,
  };
}

function refusal({ options }: CoapMessage): CoapReply | undefined {
  for (const { number } of options) {
    if (number === OptionNumber.PROXY_URI || number === OptionNumber.PROXY_SCHEME)
      return textReply(Status.PROXYING_NOT_SUPPORTED, 'This gateway reaches one device only');
    if (!isCritical(number) && isUnsafe(number) && !known.has(number))
      return textReply(Status.BAD_OPTION, `Option ${number} is not supported`);
  }
  return undefined;
}

/** Whether the device accepts this query. */
function isQuery(query: readonly string[]): boolean {
  return orElse(() => checkQuery(query), null) !== null;
}

/** Whether an option is unsafe to forward (RFC 7252 §5.4.6). */
function isUnsafe(number: number): boolean {
  return (number & 2) !== 0;
}
