/**
 * Prints the payload of a CoAP answer: text as text, JSON and CBOR as JSON, with line breaks for a person at a
 * terminal, anything else as bytes, at a terminal as hexadecimal digits.
 */
import { type Answer, ContentFormat } from '../../client/node.ts';
import { decode } from '../../protocol/cbor/index.ts';
import { orElse } from '../../protocol/or-else.ts';
import type { Output } from '../frame/output.ts';

export type Payload = Pick<Answer, 'format' | 'bytes'>;

/** Formats that are text. */
const TEXTS: readonly (number | undefined)[] = [
  undefined,
  ContentFormat.TEXT_PLAIN,
  ContentFormat.LINK_FORMAT,
  ContentFormat.APPLICATION_XML,
  ContentFormat.APPLICATION_JSON,
];
/** Bytes in a line of digits. */
const LINE = 32;

type Content = { readonly text: string } | { readonly value: unknown } | { readonly bytes: Uint8Array };

/**
 * Returns the members for `--json`: `payload` is text, or the value of CBOR with byte strings as hexadecimal digits;
 * `payloadBase64` is anything else.
 */
export function payloadDocument(payload: Payload): { payload?: unknown; payloadBase64?: string } {
  if (payload.bytes.length === 0) return {};
  const content = contentOf(payload);
  if ('text' in content) return { payload: content.text };
  if ('value' in content) return { payload: content.value };
  return { payloadBase64: Buffer.from(content.bytes).toString('base64') };
}

/** Writes it to standard output. @param raw the bytes unchanged */
export function printPayload(payload: Payload, output: Output, raw: boolean): void {
  if (payload.bytes.length === 0) return;
  const content = raw ? { bytes: payload.bytes } : contentOf(payload);
  if ('bytes' in content && (raw || !output.isTerminal)) output.bytes(content.bytes);
  else output.payload(shown(payload, content, output.isTerminal));
}

/** Text of an answer, for a message; undefined if it is not text. */
export function payloadText(payload: Payload): string | undefined {
  if (payload.bytes.length === 0) return undefined;
  const content = contentOf(payload);
  if ('text' in content) return content.text;
  return 'value' in content ? JSON.stringify(content.value) : undefined;
}

function shown({ format }: Payload, content: Content, pretty: boolean): string {
  if ('value' in content) return JSON.stringify(content.value, null, pretty ? 2 : 0);
  if ('bytes' in content) return hexLines(content.bytes);
  return pretty && format === ContentFormat.APPLICATION_JSON
    ? orElse(() => JSON.stringify(JSON.parse(content.text), null, 2), content.text)
    : content.text;
}

function contentOf({ format, bytes }: Payload): Content {
  if (format === ContentFormat.APPLICATION_CBOR)
    // CBOR outside our subset counts as bytes.
    return orElse(() => ({ value: withoutBytes(decode(bytes)) }), { bytes });
  if (!TEXTS.includes(format)) return { bytes };
  return orElse(() => ({ text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }), { bytes });
}

function withoutBytes(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (Array.isArray(value)) return value.map(withoutBytes);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, withoutBytes(entry)]));
}

function hexLines(bytes: Uint8Array): string {
  const digits = Buffer.from(bytes).toString('hex');
  return (digits.match(new RegExp(`.{1,${2 * LINE}}`, 'g')) ?? []).join('\n');
}
