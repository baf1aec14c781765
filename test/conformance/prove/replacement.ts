/**
 * How a row's symbol is replaced so that its test must fail. Pure data: the parent process creates it, and the tests'
 * worker carries it out (worker.ts).
 *
 *   operation, limit   calls that succeeded in the recording do nothing and return undefined, or a promise of it; those
 *   that threw stay
 *   event              is not emitted: listeners given to the operation do not receive it
 *   error              an error of this code gets UNKNOWN instead
 *   option, field      is removed from the data of the operation: arguments, results, arguments and results of
 *   callbacks
 *   endpoint           is not registered, so that a request is answered 4.04
 *   constant           has another value
 *   type               is `unknown` (types.ts; the worker does nothing)
 */
import type { Row } from '../check.ts';
import { type Place, placeOf } from './sources.ts';

export type Replacement =
  | { readonly kind: 'call' | 'constant'; readonly places: readonly Place[] }
  | { readonly kind: 'event' | 'error' | 'endpoint'; readonly places: readonly Place[]; readonly value: string }
  | { readonly kind: 'member'; readonly places: readonly Place[]; readonly path: readonly string[] };

/** Where errors get their codes. */
const ERRORS = ['bindings/error:SvcError', 'protocol/errors/classes:NoChannelsError'];

/** The places where a row's symbol is replaced, except those that have no source. */
export function placesOf(root: string, row: Row): Place[] {
  return symbolsOf(row).flatMap((symbol) => placeOf(root, symbol) ?? []);
}

/** The replacement for a row that is done, or the reason why there is none. */
export function replacementOf(root: string, row: Row): Replacement | string {
  const places = placesOf(root, row);
  const type = places.find(({ isValue }) => !isValue);
  if (type !== undefined) return `${type.name} is a type: nothing says what carries it out`;
  if (places.length < symbolsOf(row).length) return `no source of ${row.symbol}`;
  const member = /\.(\w+)$/.exec(row.symbol)?.[1] ?? '';
  switch (row.kind) {
    case 'operation':
    case 'limit':
      return { kind: 'call', places };
    case 'event':
      return { kind: 'event', places, value: member };
    case 'error':
      return { kind: 'error', places, value: member };
    case 'option':
    case 'field':
      return { kind: 'member', places, path: row.path === '' ? [member] : row.path.split(/\[?\]?\./) };
    case 'endpoint':
      return { kind: 'endpoint', places, value: /\[(.+)\]$/.exec(row.symbol)?.[1] ?? '' };
    case 'constant':
      return { kind: 'constant', places };
    case 'type':
      return 'a type is proved by the type checker';
  }
}

function symbolsOf({ kind, where, symbol }: Row): readonly string[] {
  if (kind === 'error') return ERRORS;
  return where.length > 0 ? where : [symbol];
}
