/**
 * CoRE Link Format (RFC 6690): a server's description of its resources at `/.well-known/core`, and the filter of a
 * request for it (§4.1).
 *
 *     </sensors/temp>;rt="temperature-c";ct=0;obs,</light>;title="The light"
 *
 * Sans-IO. `encodeLinks` and `decodeLinks` are symmetric; decoding accepts blanks and line ends between the parts.
 */
import { LocalError, RemoteError } from '../errors/index.ts';
import { orElse } from '../or-else.ts';

/** A resource with its attributes. */
export interface CoreLink {
  /** URI reference, percent-encoded, for example `/sensors/temp`. */
  readonly href: string;
  /** Target attributes in order; null for one without a value, such as `obs` (RFC 7641 §6). */
  readonly attributes: readonly CoreAttribute[];
}

export type CoreAttribute = readonly [name: string, value: string | null];

/** Path at which a server lists its resources (RFC 6690 §4). */
export const CORE_PATH = '/.well-known/core';

/** Most links of a document; more are refused. */
const MAX_LINKS = 4096;
/** RFC 2616 token; `*` only at its end, where it marks an encoded value (RFC 5987). */
const NAME = /^[!#$&+\-.^_`|~0-9A-Za-z]+\*?$/;
/** Attributes with numeric values, written without quotes (RFC 6690 §3.3, RFC 7252 §7.2.1). */
const NUMBERS: ReadonlySet<string> = new Set(['sz', 'ct']);
/** Attributes that hold several values separated by blanks. */
const LISTS: ReadonlySet<string> = new Set(['rt', 'if', 'rel', 'rev', 'ct']);
/** A character of an unquoted value. */
const UNQUOTED = /[^\s",;<>\\]/;

/** @throws LocalError INVALID_ARGUMENT for a URI, name or value that the format cannot hold */
export function encodeLinks(links: readonly CoreLink[]): string {
  return links.map(encodeLink).join(',');
}

function encodeLink({ href, attributes }: CoreLink): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (/[<>"\\\s\u0000-\u001f]/.test(href)) throw invalid(`the URI ${JSON.stringify(href)}`);
  return [`<${href}>`, ...attributes.map(encodeAttribute)].join(';');
}

function encodeAttribute([name, value]: CoreAttribute): string {
  if (!NAME.test(name)) throw invalid(`the attribute ${JSON.stringify(name)}`);
  if (value === null) return name;
  if (NUMBERS.has(name) && /^\d+$/.test(value)) return `${name}=${value}`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (/[\u0000-\u001f\u007f]/.test(value)) throw invalid(`the value of ${name}`);
  return `${name}="${value.replace(/["\\]/g, '\\$&')}"`;
}

/** @throws RemoteError PARSE, with the problem and its position */
export function decodeLinks(text: string): CoreLink[] {
  const scan = new Scan(text);
  const links: CoreLink[] = [];
  scan.blanks();
  while (!scan.isAtEnd) {
    if (links.length > 0) scan.expect(',', 'a comma between links');
    links.push(readLink(scan));
    if (links.length > MAX_LINKS) throw scan.problem(`more than ${MAX_LINKS} links`);
  }
  return links;
}

function readLink(scan: Scan): CoreLink {
  scan.expect('<', 'a link in <…>');
  const href = scan.until('>');
  const attributes: CoreAttribute[] = [];
  while (scan.take(';')) attributes.push(readAttribute(scan));
  return { href, attributes };
}

function readAttribute(scan: Scan): CoreAttribute {
  const name = scan.while(/[^\s",;<>\\=]/);
  if (!NAME.test(name)) throw scan.problem('no attribute');
  if (!scan.take('=')) return [name, null];
  if (!scan.take('"')) {
    const value = scan.while(UNQUOTED);
    if (value === '') throw scan.problem(`no value of ${name}`);
    return [name, value];
  }
  return [name, scan.quoted()];
}

/** A position in a document. Blanks around separators are skipped: the examples of RFC 6690 are wrapped. */
class Scan {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  blanks(): void {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at++;
  }

  /** Skips the separator if it is next, and returns whether it was. */
  take(separator: string): boolean {
    this.blanks();
    if (this.#text[this.#at] !== separator) return false;
    this.#at++;
    if (separator !== '"') this.blanks();
    return true;
  }

  expect(separator: string, what: string): void {
    if (!this.take(separator)) throw this.problem(`not ${what}`);
  }

  until(end: string): string {
    const stop = this.#text.indexOf(end, this.#at);
    if (stop < 0) throw this.problem(`no ${end}`);
    const part = this.#text.slice(this.#at, stop);
    this.#at = stop + 1;
    this.blanks();
    return part;
  }

  while(allowed: RegExp): string {
    const begin = this.#at;
    while (!this.isAtEnd && allowed.test(this.#text[this.#at]!)) this.#at++;
    const part = this.#text.slice(begin, this.#at);
    this.blanks();
    return part;
  }

  /** Reads up to the closing quote; `\` escapes the next character. */
  quoted(): string {
    let value = '';
    for (;;) {
      const next = this.#text[this.#at++];
      if (next === undefined) throw this.problem('no closing quote');
      if (next === '"') break;
      value += next === '\\' ? (this.#text[this.#at++] ?? '') : next;
    }
    this.blanks();
    return value;
  }

  problem(what: string): RemoteError {
    return new RemoteError('PARSE', `link format: ${what} at character ${this.#at}`);
  }
}

/**
 * Returns the links that every argument of a query selects (RFC 6690 §4.1). `href=…` selects by URI, another name by
 * that attribute; a value with blanks is a list of which one match is enough; `*` at the end matches anything. A name
 * alone selects the links that have the attribute.
 * @param query decoded arguments of the request
 */
export function filterLinks(links: readonly CoreLink[], query: readonly string[]): CoreLink[] {
  return query.map(picker).reduce<CoreLink[]>((left, picks) => left.filter(picks), [...links]);
}

function picker(argument: string): (link: CoreLink) => boolean {
  const equals = argument.indexOf('=');
  const name = equals < 0 ? argument : argument.slice(0, equals);
  const wanted = equals < 0 ? '*' : argument.slice(equals + 1);
  const isPrefix = wanted.endsWith('*');
  const matches = (value: string): boolean => (isPrefix ? value.startsWith(wanted.slice(0, -1)) : value === wanted);
  return ({ href, attributes }) => {
    if (name === 'href') return matches(orElse(() => decodeURIComponent(href), href));
    return attributes.some(([each, value]) => each === name && valuesOf(name, value).some(matches));
  };
}

function valuesOf(name: string, value: string | null): readonly string[] {
  if (value === null) return [''];
  return LISTS.has(name) ? value.split(' ') : [value];
}

/** Returns the first value of an attribute: undefined when it is absent, empty when it has no value. */
export function attributeOf({ attributes }: CoreLink, name: string): string | undefined {
  const found = attributes.find(([each]) => each === name);
  return found === undefined ? undefined : (found[1] ?? '');
}

function invalid(what: string): LocalError {
  return new LocalError('INVALID_ARGUMENT', `link format: ${what} cannot be written`);
}
