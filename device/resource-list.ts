/**
 * `GET /.well-known/core`: the resources of a device in the link format (RFC 6690), with a filter in the query (§4.1).
 *
 * It lists the SDK endpoints that people and applications use, and the application's resources except hidden ones. A
 * method with an `action` is listed for a connection that may perform the action now. The list reveals nothing about a
 * resource's content, and leaving one out is not reported as a refusal.
 *
 *     </thermostat/target>;methods="GET PUT";rt="thermostat.target";obs
 *
 * `methods` is our own attribute. A path with `{name}` segments is marked `templated`: it is not an address by itself.
 */
import { type CoreAttribute, type CoreLink, encodeLinks, filterLinks, formatPath, parsePath } from '../protocol/coap/index.ts';
import { LocalError } from '../protocol/errors/index.ts';

/** The list's description of a resource. */
export interface ListedResource {
  /**
   * Resource types, for machines (RFC 6690 §3.1): one or several names separated by spaces, such as
   * `thermostat.target`.
   */
  readonly type?: string;
  /** For people. */
  readonly title?: string;
  /**
   * Hides the resource in the list from clients to which the authorization listener denies this action. The handler
   * must still guard the resource.
   */
  readonly action?: string;
  /** True for a resource that is never listed. */
  readonly hidden?: boolean;
}

interface Entry extends ListedResource {
  readonly method: string;
  readonly path: string;
  readonly observable: boolean;
}

/** The list of one device. */
export class ResourceList {
  readonly #entries = new Set<Entry>();

  /**
   * Adds one method of a path.
   * @returns the function that removes it
   * @throws LocalError INVALID_ARGUMENT for a type or title that cannot be listed
   */
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
   * Returns the list for one connection, in the order of paths.
   * @param allows whether the connection may perform an action; asked once for each
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

/** All methods of a path are one resource: the first that states a property counts. */
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
