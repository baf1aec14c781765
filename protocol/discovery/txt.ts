/**
 * Encoding and decoding of the TXT items of a service (RFC 6763 §6): `key=value`, each of at most 255 bytes, keys
 * without case.
 */
import { isText } from '../arguments.ts';
import { LocalError } from '../errors/index.ts';

/** Maximum bytes of one item: its length is one byte (RFC 6763 §6.1). */
const MAX_ITEM = 255;
/** Maximum bytes of all items of one set (RFC 6763 §6.2: a TXT record should fit into one Ethernet frame). */
const MAX_TXT = 1300;

/** Printable ASCII without `=` (RFC 6763 §6.4). */
const KEY = /^[\x20-\x3c\x3e-\x7e]+$/;

/** The items of one service, in the order in which their keys were first set. */
export class TxtItems {
  readonly #items = new Map<string, Uint8Array>();

  /**
   * Sets an item; a key that differs only in case replaces the earlier one.
   * @throws LocalError INVALID_ARGUMENT for a key that is not printable ASCII without `=`, STRING_TOO_LONG for an item
   *   over 255 bytes, or when all items together exceed 1,300
   */
  set(key: string, value: string): void {
    if (!isText(key) || !isText(value) || !KEY.test(key))
      throw new LocalError('INVALID_ARGUMENT', 'the key of a TXT item is printable ASCII without "=", and its value a text');
    const item = new TextEncoder().encode(`${key}=${value}`);
    if (item.length > MAX_ITEM) throw new LocalError('STRING_TOO_LONG', `a TXT item, key=value, has at most ${MAX_ITEM} bytes`);
    const others = [...this.#items].filter(([other]) => other !== key.toLowerCase()).reduce((sum, [, { length }]) => sum + length + 1, 0);
    if (others + item.length + 1 > MAX_TXT) throw new LocalError('STRING_TOO_LONG', `all TXT items together have at most ${MAX_TXT} bytes`);
    this.#items.set(key.toLowerCase(), item);
  }

  /** Returns the strings of the TXT record. */
  strings(): Uint8Array[] {
    return [...this.#items.values()];
  }
}

/**
 * Returns the keys and values of a TXT record. Of keys that differ only in case the first counts; items without a key
 * are ignored (RFC 6763 §6.4); a key without `=` has the value ''. Values are decoded as UTF-8, with U+FFFD for invalid
 * bytes.
 */
export function txtEntries(strings: readonly Uint8Array[]): Map<string, string> {
  const entries = new Map<string, string>();
  const seen = new Set<string>();
  for (const bytes of strings) {
    const item = new TextDecoder().decode(bytes);
    const end = item.includes('=') ? item.indexOf('=') : item.length;
    const key = item.slice(0, end);
    if (key === '' || seen.has(key.toLowerCase())) continue;
    seen.add(key.toLowerCase());
    entries.set(key, item.slice(end + 1));
  }
  return entries;
}

/** Returns the TXT items `productid` and `deviceid` (PROTOCOL.md §11), '' where they are absent. */
export function idsOf(strings: readonly Uint8Array[]): { productId: string; deviceId: string } {
  const items = new Map([...txtEntries(strings)].map(([key, value]) => [key.toLowerCase(), value]));
  return { productId: items.get('productid') ?? '', deviceId: items.get('deviceid') ?? '' };
}
