/**
 * Finds the handler of a request by method and path. Patterns are paths whose segments may be `{name}`, which matches
 * any one segment and passes it on decoded; a literal segment takes precedence over `{name}`. An unknown path or method
 * is 404, never 405. A query is refused as an unsupported critical option, except where a route takes one.
 *
 * Each kind of channel has its own router; `Context` is the handlers' view of the channel. A router never throws
 * because of a request: an error of the catalogue becomes its status with its message, anything else 5.00 without its
 * cause.
 */
import { LocalError, SvcError } from '../errors/index.ts';
import { type CoapMethod, MethodCode, Status } from './codes.ts';
import { OptionNumber, refusalText } from './options.ts';
import { parsePath } from './path.ts';
import type { IncomingRequest } from './request.ts';
import { type CoapReply, textReply } from './response.ts';

/** A request with the additions of its route and channel. */
export interface RoutedRequest<Context> extends IncomingRequest {
  /** Values of the `{name}` segments, decoded. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly context: Context;
}

/** Answers a request; undefined (the request was dropped) becomes 5.00 "Request unhandled". */
export type Handler<Context> = (request: RoutedRequest<Context>) => CoapReply | undefined | Promise<CoapReply | undefined>;

/** Options of a route. */
export interface HandlerOptions {
  /** The handler reads the query; other routes answer a query with 4.00. */
  readonly takesQuery?: boolean;
}

/** Callbacks of a router. */
export interface RouterOptions {
  /** Receives errors that are not in the catalogue, for the log. */
  readonly onError?: (error: unknown, request: IncomingRequest) => void;
}

/** Methods and paths of one kind of channel, with their handlers. */
export class Router<Context> {
  readonly #root = new Node<Context>();
  readonly #onError: (error: unknown, request: IncomingRequest) => void;

  constructor({ onError = () => {} }: RouterOptions = {}) {
    this.#onError = onError;
  }

  /**
   * Adds a handler.
   * @param pattern e.g. `/iam/users/{username}`
   * @throws LocalError INVALID_ARGUMENT for a bad pattern, OPERATION_IN_PROGRESS when the method and pattern are taken
   */
  on(method: CoapMethod, pattern: string, handler: Handler<Context>, { takesQuery = false }: HandlerOptions = {}): this {
    if (!Object.hasOwn(MethodCode, method)) throw new LocalError('INVALID_ARGUMENT', `the method ${method} cannot be routed`);
    const segments = parsePath(pattern);
    const names = segments.map(parameterName).filter((name) => name !== undefined);
    if (new Set(names).size < names.length) throw new LocalError('INVALID_ARGUMENT', `the pattern ${pattern} has a name twice`);
    const routes = segments.reduce((node, segment) => node.child(segment), this.#root).routes;
    if (routes.has(method)) throw new LocalError('OPERATION_IN_PROGRESS', `${method} ${pattern} has a handler`);
    routes.set(method, { names, handler, takesQuery });
    return this;
  }

  /** Removes a handler; false when there was none. */
  off(method: CoapMethod, pattern: string): boolean {
    let node: Node<Context> | undefined = this.#root;
    for (const segment of parsePath(pattern)) node = node?.existing(segment);
    return node?.routes.delete(method) ?? false;
  }

  /** Returns the reply to a request. Never rejects. */
  async handle(request: IncomingRequest, context: Context): Promise<CoapReply> {
    const found = this.#root.find(request.segments, 0, request.method, []);
    if (request.query.length > 0 && found?.route.takesQuery !== true) return textReply(Status.BAD_REQUEST, NO_QUERY);
    if (found === undefined) return textReply(Status.NOT_FOUND, 'Not found');
    const { route, values } = found;
    const parameters = Object.fromEntries(route.names.map((name, i) => [name, values[i]!]));
    try {
      const reply = await route.handler({ ...request, parameters, context });
      return reply ?? textReply(Status.INTERNAL_SERVER_ERROR, 'Request unhandled');
    } catch (error) {
      return this.#errorReply(error, request);
    }
  }

  #errorReply(error: unknown, request: IncomingRequest): CoapReply {
    const status = error instanceof SvcError ? statuses.get(error.code) : undefined;
    if (status !== undefined) return textReply(status, (error as SvcError).message);
    this.#onError(error, request);
    return textReply(Status.INTERNAL_SERVER_ERROR, 'Internal error');
  }
}

interface Route<Context> {
  /** Names of the `{name}` segments in order. */
  readonly names: readonly string[];
  readonly handler: Handler<Context>;
  readonly takesQuery: boolean;
}

const NO_QUERY = `Critical ${refusalText({ number: OptionNumber.URI_QUERY, problem: 'unsupported' })}`;

interface Found<Context> {
  readonly route: Route<Context>;
  readonly values: readonly string[];
}

/** One segment of the patterns, with children by literal and one for any segment. */
class Node<Context> {
  readonly routes = new Map<CoapMethod, Route<Context>>();
  readonly #literals = new Map<string, Node<Context>>();
  #any: Node<Context> | undefined;

  child(segment: string): Node<Context> {
    const existing = this.existing(segment);
    if (existing !== undefined) return existing;
    const node = new Node<Context>();
    if (parameterName(segment) === undefined) this.#literals.set(segment, node);
    else this.#any = node;
    return node;
  }

  existing(segment: string): Node<Context> | undefined {
    return parameterName(segment) === undefined ? this.#literals.get(segment) : this.#any;
  }

  find(segments: readonly string[], depth: number, method: CoapMethod, values: readonly string[]): Found<Context> | undefined {
    const segment = segments[depth];
    if (segment === undefined) {
      const route = this.routes.get(method);
      return route === undefined ? undefined : { route, values };
    }
    const literal = this.#literals.get(segment)?.find(segments, depth + 1, method, values);
    return literal ?? this.#any?.find(segments, depth + 1, method, [...values, segment]);
  }
}

/** Returns the name of a `{name}` segment, undefined for a literal. */
function parameterName(segment: string): string | undefined {
  return /^\{([A-Za-z][A-Za-z0-9_-]*)\}$/.exec(segment)?.[1];
}

/** Statuses of the catalogue's errors, but for those that concern our own state and not the request. */
const statuses: ReadonlyMap<string, number> = new Map([
  ['PARSE', Status.BAD_REQUEST],
  ['BAD_REQUEST', Status.BAD_REQUEST],
  ['INVALID_ARGUMENT', Status.BAD_REQUEST],
  ['STRING_TOO_LONG', Status.BAD_REQUEST],
  ['WRONG_PRODUCT_ID', Status.BAD_REQUEST],
  ['WRONG_DEVICE_ID', Status.BAD_REQUEST],
  ['UNAUTHORIZED', Status.UNAUTHORIZED],
  ['TOKEN_REJECTED', Status.UNAUTHORIZED],
  ['FORBIDDEN', Status.FORBIDDEN],
  ['NOT_FOUND', Status.NOT_FOUND],
  ['UNKNOWN_PRODUCT_ID', Status.NOT_FOUND],
  ['UNKNOWN_DEVICE_ID', Status.NOT_FOUND],
  ['UNKNOWN_FINGERPRINT', Status.NOT_FOUND],
  ['UNKNOWN_SERVER_KEY', Status.NOT_FOUND],
  ['IN_USE', Status.CONFLICT],
  ['REPLACED', Status.CONFLICT],
  ['TOO_MANY_REQUESTS', Status.TOO_MANY_REQUESTS],
  ['NOT_IMPLEMENTED', Status.NOT_IMPLEMENTED],
  ['BAD_RESPONSE', Status.BAD_GATEWAY],
  ['NOT_ATTACHED', Status.SERVICE_UNAVAILABLE],
  ['OUT_OF_MEMORY', Status.SERVICE_UNAVAILABLE],
  ['OPERATION_IN_PROGRESS', Status.SERVICE_UNAVAILABLE],
  ['TIMEOUT', Status.GATEWAY_TIMEOUT],
]);
