/**
 * `GET /.well-known/core`: which resources a device has, in the link format (RFC 6690), with a filter in the query (§4.1).
 *
 * Listed are the endpoints of the SDK that people and applications use, and the application's resources, but for those that it hides. One with an `action` is
 * listed for a connection that may do that now, method by method. Nothing is said of what a resource holds, and a listing is no refusal: nobody is told of it.
 *
 *     </thermostat/target>;methods="GET PUT";rt="thermostat.target";obs
 *
 * `methods` is ours. A path with `{name}` segments is marked `templated`: it is no place by itself.
 */
import { type CoreAttribute, type CoreLink, encodeLinks, filterLinks, formatPath, parsePath } from '../protocol/coap/index.ts';
import { LocalError } from '../protocol/errors/index.ts';

/** What the list says of a resource. */
export interface ListedResource {
  /** Resource types, for machines (RFC 6690 §3.1): one name or several with a blank between them, such as `thermostat.target`. */
  readonly type?: string;
  /** For people. */
  readonly title?: string;
  /** Who may not do this, as the authorization listener says, does not see the resource in the list. It does not guard the resource: its handler does. */
  readonly action?: string;
  /** Nobody sees it in the list. */
  readonly hidden?: boolean;
}

interface Entry extends ListedResource {
  readonly method: string;
  readonly path: string;
  readonly observable: boolean;
}

/** What is listed of one device. */
export class ResourceList {
  readonly #entries = new Set<Entry>();

  /** Adds one method of a path. @returns what takes it away @throws LocalError INVALID_ARGUMENT for a type or title that cannot be listed */
  add(method: string, path: string, { observable = false, ...listed }: ListedResource & { readonly observable?: boolean }): () => void {
    const { type, title } = listed;
    if (type !== undefined && !TYPES.test(type))
      throw new LocalError(
        'INVALID_ARGUMENT',
        'the type of a CoAP resource is words of a-z, 0-9, "." and "-" that begin with a letter, with a blank between them',
      );
    if (title !== undefined && !TITLE.test(title))
      throw new LocalError('INVALID_ARGUMENT', `the title of a CoAP resource is 1 to ${MAX_TITLE} characters on one line`);
    if (listed.hidden === true) return () => {};
    const entry = { ...listed, method, path, observable };
    this.#entries.add(entry);
    return () => void this.#entries.delete(entry);
  }

  /**
   * The list as it is for one connection, in the order of paths.
   * @param allows whether the connection may do an action; asked once for each
   * @param query arguments of the request
   */
  async describe(allows: (action: string) => Promise<boolean>, query: readonly string[]): Promise<string> {
    const actions = [...new Set([...this.#entries].flatMap(({ action }) => (action === undefined ? [] : [action])))];
    const allowed = new Set((await Promise.all(actions.map(async (action) => ((await allows(action)) ? [action] : [])))).flat());
    const seen = new Map<string, Entry[]>();
    for (const entry of this.#entries) {
      if (entry.action === undefined || allowed.has(entry.action)) seen.set(entry.path, [...(seen.get(entry.path) ?? []), entry]);
    }
    const links = [...seen].map(([path, entries]) => linkOf(path, entries)).sort((one, other) => (one.href < other.href ? -1 : 1));
    return encodeLinks(filterLinks(links, query));
  }
}

const TYPES = /^[a-z][a-z0-9.-]*(?: [a-z][a-z0-9.-]*)*$/;
const MAX_TITLE = 100;
const TITLE = new RegExp(`^[^\\p{Cc}\\p{Zl}\\p{Zp}\\p{Surrogate}]{1,${MAX_TITLE}}$`, 'u');

/** All methods of a path are one resource: the first that says something of it counts. */
function linkOf(path: string, entries: readonly Entry[]): CoreLink {
  const first = (what: 'type' | 'title'): string | undefined => entries.find((entry) => entry[what] !== undefined)?.[what];
  const [type, title] = [first('type'), first('title')];
  const attributes: CoreAttribute[] = [['methods', [...new Set(entries.map(({ method }) => method))].sort().join(' ')]];
  if (type !== undefined) attributes.push(['rt', type]);
  if (title !== undefined) attributes.push(['title', title]);
  if (entries.some(({ observable }) => observable)) attributes.push(['obs', null]);
  if (/\/\{[^/]*\}(?:\/|$)/.test(path)) attributes.push(['templated', null]);
  return { href: formatPath(parsePath(path)), attributes };
}
