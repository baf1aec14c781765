/** What the tables of the reference consist of: cases, and bodies that many endpoints share. */
import { type Body, type CallerName, cbor, type EndpointBenchOptions } from './endpoint-bench.ts';

/** A status, the reason, the caller, the path, and other conditions. */
export type Case = readonly [status: number, why: string, caller: CallerName, path: string, body?: Body, options?: EndpointBenchOptions];

export interface Reference {
  /** Method and path as in docs/iam.md. */
  readonly endpoint: string;
  readonly statuses: readonly number[];
  /** Whether policies are asked before the body is checked, or after it. */
  readonly order?: 'action, body' | 'body, action';
  /** A valid body, where one is needed. */
  readonly body?: Body;
  readonly cases: readonly Case[];
}

/** A disk that is full. */
export const FULL: EndpointBenchOptions = { save: 'fails' };
export const none: Body = {};
export const text = (contentFormat: number | undefined, bytes: string): Body => ({
  payload: new TextEncoder().encode(bytes),
  ...(contentFormat === undefined ? {} : { contentFormat }),
});
/** Bodies that are invalid at every endpoint that needs one. */
export const broken: readonly (readonly [string, Body])[] = [
  ['no body', none],
  ['a content format without payload', { contentFormat: 60 }],
  ['no content format', { payload: cbor({ Username: 'new' }).payload! }],
  ['JSON', text(50, '{"Username":"new"}')],
  ['octets', { ...cbor('new'), contentFormat: 42 }],
  ['broken CBOR', { contentFormat: 60, payload: Uint8Array.of(0xa1, 0x68) }],
  ['bytes after the item', { contentFormat: 60, payload: Uint8Array.of(0xf5, 0xf5) }],
];
export const bad = (caller: CallerName, path: string, more: readonly (readonly [string, Body])[]): Case[] =>
  [...broken, ...more].map(([why, body]) => [400, why, caller, path, body]);
/** A GET that some callers may and others may not. */
export const read = (path: string, { may, mayNot }: Record<'may' | 'mayNot', CallerName>): Reference => ({
  endpoint: `GET ${path}`,
  statuses: [205, 403],
  cases: [
    [205, 'allowed', may, path],
    [403, 'denied', mayNot, path],
  ],
});
export const long = (length: number): string => 'x'.repeat(length);
