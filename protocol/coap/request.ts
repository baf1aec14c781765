/**
 * Requests as an application sees them, and as messages: method, path, query, content format, observation and payload.
 */
import { orElse } from '../or-else.ts';
import { type Block, readBlock } from './block.ts';
import { type CoapMethod, MethodCode, methodOfCode, Status } from './codes.ts';
import { type CoapMessage, invalid } from './message.ts';
import {
  type CoapOption,
  OptionNumber,
  type RefusedOption,
  refusalText,
  type SortedOptions,
  sortOptions,
  uintOption,
  uintOptionOf,
} from './options.ts';
import { checkQuery, formatPath, parsePath, pathProblem } from './path.ts';

/** A request of an application. */
export interface CoapRequest {
  readonly method: CoapMethod;
  /** Begins with `/`; segments may be percent-encoded; at most 256 bytes decoded. */
  readonly path: string;
  /** Decoded arguments, by convention `key=value`; at most 512 bytes. */
  readonly query?: readonly string[];
  /** 0 to 65535. */
  readonly contentFormat?: number;
  /** Default empty. Sent in blocks when it does not fit one message. */
  readonly payload?: Uint8Array;
  /**
   * 0 requests notifications of changes (RFC 7641), with GET or POST; `cancel` ends them. 1 only marks a request as the
   * end of an observation.
   */
  readonly observe?: 0 | 1;
}

/** A whole request of the peer. */
export interface IncomingRequest {
  /** Identifies the exchange: the argument of `respond`, also for later answers to an observer. */
  readonly exchange: number;
  readonly method: CoapMethod;
  /** Percent-encoded path string. */
  readonly path: string;
  /** Decoded segments of the path. */
  readonly segments: readonly string[];
  readonly query: readonly string[];
  readonly contentFormat?: number;
  readonly payload: Uint8Array;
  /** The peer requests notifications of changes: an answer with `observe: true` begins an observation. */
  readonly observe: boolean;
}

/** The content of a request message, without its payload. */
export interface RequestHead extends Omit<IncomingRequest, 'exchange' | 'payload' | 'observe'> {
  readonly observe: number | undefined;
  readonly block1: Block | undefined;
  readonly block2: Block | undefined;
  readonly size1: number | undefined;
  /** ETag of the body whose further blocks are requested. */
  readonly etag: Uint8Array | undefined;
}

/** A request that is refused before it is delivered. */
export interface RefusedRequest {
  readonly refused: number;
  readonly text: string;
}

/**
 * Critical options that every request may carry (PROTOCOL.md §7). In our channels any other is answered 4.00, not 4.02
 * as in RFC 7252 §5.4.1; one of these that is repeated or has a wrong length is answered 4.02.
 */
export const acceptedInRequests: readonly number[] = [
  OptionNumber.URI_HOST,
  OptionNumber.URI_PORT,
  OptionNumber.URI_PATH,
  OptionNumber.BLOCK1,
  OptionNumber.BLOCK2,
];

const utf8Encoder = new TextEncoder();
const utf8Decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Returns the options of a request, without blocks.
 * @throws LocalError INVALID_ARGUMENT for a method, path, query or content format that cannot be sent
 */
export function requestOptions(request: CoapRequest): CoapOption[] {
  if (!Object.hasOwn(MethodCode, request.method)) invalid(`the method ${request.method}`);
  const options: CoapOption[] = [];
  for (const segment of parsePath(request.path)) options.push({ number: OptionNumber.URI_PATH, value: utf8Encoder.encode(segment) });
  for (const argument of checkQuery(request.query ?? []))
    options.push({ number: OptionNumber.URI_QUERY, value: utf8Encoder.encode(argument) });
  if (request.contentFormat !== undefined) options.push(contentFormatOption(request.contentFormat));
  if (request.observe !== undefined) options.push(uintOptionOf(OptionNumber.OBSERVE, request.observe));
  return options;
}

/**
 * Decodes a request message. Never throws.
 * @param accepted critical options that do not cause a refusal
 */
export function readRequest(message: CoapMessage, accepted: ReadonlySet<number>): RequestHead | RefusedRequest {
  const options = sortOptions(message.options, accepted);
  if (options.refused !== undefined) return { refused: statusOfRefusal(options.refused), text: `Critical ${refusalText(options.refused)}` };
  const method = methodOfCode(message.code);
  if (method === undefined) return { refused: Status.NOT_FOUND, text: 'Unknown method' };
  const segments = texts(options, OptionNumber.URI_PATH);
  const query = texts(options, OptionNumber.URI_QUERY);
  if (segments === undefined || query === undefined) return { refused: Status.BAD_REQUEST, text: 'The path or query is not UTF-8' };
  const problem = pathProblem(segments);
  if (problem !== undefined) return { refused: Status.BAD_REQUEST, text: `The path ${problem}` };
  const contentFormat = uintOption(options, OptionNumber.CONTENT_FORMAT);
  return {
    method,
    path: formatPath(segments),
    segments,
    query,
    ...(contentFormat === undefined ? {} : { contentFormat }),
    // RFC 7641 defines it for GET; a POST may request the same for a later answer (PROTOCOL.md §7, `Wait` of a
    // connect).
    observe: method === 'GET' || method === 'POST' ? uintOption(options, OptionNumber.OBSERVE) : undefined,
    block1: blockOption(options, OptionNumber.BLOCK1),
    block2: blockOption(options, OptionNumber.BLOCK2),
    size1: uintOption(options, OptionNumber.SIZE1),
    etag: options.known.get(OptionNumber.ETAG)?.[0],
  };
}

/** Returns Block1 or Block2 of a message. */
export function blockOption(options: SortedOptions, number: number): Block | undefined {
  const value = uintOption(options, number);
  return value === undefined ? undefined : readBlock(value);
}

/** @throws LocalError INVALID_ARGUMENT */
export function contentFormatOption(format: number): CoapOption {
  if (!Number.isInteger(format) || format < 0 || format > 0xffff) invalid(`the content format ${format}`);
  return uintOptionOf(OptionNumber.CONTENT_FORMAT, format);
}

function statusOfRefusal({ problem }: RefusedOption): number {
  return problem === 'unsupported' ? Status.BAD_REQUEST : Status.BAD_OPTION;
}

/** Returns the values of a repeatable string option, undefined when one is not UTF-8. */
function texts(options: SortedOptions, number: number): string[] | undefined {
  return orElse(() => (options.known.get(number) ?? []).map((value) => utf8Decoder.decode(value)), undefined);
}
