/** Responses as an application sends and receives them, and as messages. */
import { LocalError } from '../errors/index.ts';
import { printable } from '../printable.ts';
import type { Block } from './block.ts';
import { codeOfStatus, statusOfCode } from './codes.ts';
import type { CoapMessage } from './message.ts';
import { type CoapOption, OptionNumber, refusalText, sortOptions, uintOption, uintOptionOf } from './options.ts';
import { blockOption, contentFormatOption } from './request.ts';

/** A whole response of the peer. */
export interface CoapResponse {
  /** Class × 100 + detail, e.g. 205. */
  readonly status: number;
  readonly contentFormat?: number;
  /** Empty for none. */
  readonly payload: Uint8Array;
  /** Sequence number of a notification (RFC 7641 §3.4); present while an observation is open. */
  readonly observe?: number;
  /** Seconds. */
  readonly maxAge?: number;
}

/** An application's reply. */
export interface CoapReply {
  /** 200 to 231, 400 to 431, 500 to 531. */
  readonly status: number;
  /** 0 to 65535; omit it for a diagnostic text. */
  readonly contentFormat?: number;
  /** Default empty. Sent in blocks when it does not fit one message. */
  readonly payload?: Uint8Array;
  /** Seconds, 0 to 2^32 - 1. */
  readonly maxAge?: number;
  /** True keeps the requested observation open: more answers may follow. Any other answer ends it. */
  readonly observe?: boolean;
}

/** The content of a response message, without its payload. */
export interface ResponseHead extends Omit<CoapResponse, 'payload'> {
  readonly block1: Block | undefined;
  readonly block2: Block | undefined;
  readonly etag: Uint8Array | undefined;
  readonly size2: number | undefined;
}

const acceptedInResponses: ReadonlySet<number> = new Set([OptionNumber.BLOCK1, OptionNumber.BLOCK2]);

const utf8Encoder = new TextEncoder();

/** Returns a reply with a diagnostic text: UTF-8 without content format (RFC 7252 §5.5.2). */
export function textReply(status: number, text: string): CoapReply {
  return { status, payload: utf8Encoder.encode(text) };
}

/**
 * Returns the raw code of a reply.
 * @throws LocalError INVALID_ARGUMENT for an invalid status
 */
export function replyCode(reply: CoapReply): number {
  const code = codeOfStatus(reply.status);
  if (code === undefined) throw new LocalError('INVALID_ARGUMENT', `CoAP: ${reply.status} is not a response status`);
  return code;
}

/**
 * Returns the options of a reply, without blocks and observation.
 * @throws LocalError INVALID_ARGUMENT for a content format or max-age outside its range
 */
export function replyOptions(reply: CoapReply): CoapOption[] {
  const options: CoapOption[] = [];
  if (reply.contentFormat !== undefined) options.push(contentFormatOption(reply.contentFormat));
  if (reply.maxAge !== undefined) options.push(maxAgeOption(reply.maxAge));
  return options;
}

/** A rejected response: it has a critical option that counts as unrecognized (RFC 7252 §5.4.1). */
export interface RejectedResponse {
  readonly rejected: string;
}

/** Decodes a response message. Never throws. */
export function readResponse(message: CoapMessage): ResponseHead | RejectedResponse {
  const options = sortOptions(message.options, acceptedInResponses);
  if (options.refused !== undefined) return { rejected: `critical ${refusalText(options.refused)}` };
  const contentFormat = uintOption(options, OptionNumber.CONTENT_FORMAT);
  const observe = uintOption(options, OptionNumber.OBSERVE);
  const maxAge = uintOption(options, OptionNumber.MAX_AGE);
  return {
    status: statusOfCode(message.code),
    ...(contentFormat === undefined ? {} : { contentFormat }),
    ...(observe === undefined ? {} : { observe }),
    ...(maxAge === undefined ? {} : { maxAge }),
    block1: blockOption(options, OptionNumber.BLOCK1),
    block2: blockOption(options, OptionNumber.BLOCK2),
    etag: options.known.get(OptionNumber.ETAG)?.[0],
    size2: uintOption(options, OptionNumber.SIZE2),
  };
}

/** Returns the response for the application: head and whole payload. */
export function wholeResponse(head: ResponseHead, payload: Uint8Array): CoapResponse {
  const { block1: _1, block2: _2, etag: _3, size2: _4, ...response } = head;
  return { ...response, payload };
}

function maxAgeOption(seconds: number): CoapOption {
  const valid = Number.isInteger(seconds) && seconds >= 0 && seconds <= 0xffffffff;
  if (!valid) throw new LocalError('INVALID_ARGUMENT', `CoAP: the max-age ${seconds} cannot be sent`);
  return uintOptionOf(OptionNumber.MAX_AGE, seconds);
}

const utf8 = new TextDecoder();

/**
 * Returns the diagnostic text of an error (RFC 7252 §5.5.2): UTF-8 without content format. Empty when there is none.
 * @param max bytes of it that are used
 */
export function diagnosticText({ contentFormat, payload }: Pick<CoapResponse, 'contentFormat' | 'payload'>, max: number): string {
  return contentFormat === undefined ? printable(utf8.decode(payload.subarray(0, max))) : '';
}
