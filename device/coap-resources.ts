/**
 * CoAP on a device's client connections: the application's resources and the device's own under one router, with a
 * limit on concurrent requests.
 *
 * A handler that fails, or returns nothing, is answered 5.00 "Request unhandled"; one that could not write a file gets
 * "The device could not save it". Above the limit a request is answered 5.03. `coap-observers.ts` notifies observers of
 * changes.
 */

import type { Clock, Log } from '../platform/environment.ts';
import {
  bytesOf,
  callback,
  check,
  checkedBySetter,
  checkOptions,
  flag,
  isText,
  type Kind,
  oneOf,
  type Payload,
  text,
  whole,
} from '../protocol/arguments.ts';
import {
  CORE_PATH,
  type CoapMethod,
  type CoapReply,
  ContentFormat,
  type HandlerOptions,
  MethodCode,
  type RoutedRequest,
  Router,
  Status,
  textReply,
} from '../protocol/coap/index.ts';
import { LocalError } from '../protocol/errors/index.ts';
import type { Session } from '../runtime/session/index.ts';
import { type Answer, type CoapResource, Observers } from './coap-observers.ts';
import type { Connections, DeviceConnection } from './connections.ts';
import { type ListedResource, ResourceList } from './resource-list.ts';

/** A client's request, as passed to a handler. */
export interface DeviceCoapRequest {
  readonly method: CoapMethod;
  readonly path: string;
  /** Values of the `{name}` segments of the resource's path. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly contentFormat: number | undefined;
  /** Empty when the request has none. */
  readonly payload: Uint8Array;
  readonly connection: DeviceConnection;
}

/** A handler's answer. */
export interface DeviceCoapResponse {
  /** Class × 100 + detail: 205 is 2.05 Content. */
  readonly status: number;
  /** Default: text (0) for a text payload, none for bytes. */
  readonly contentFormat?: number;
  readonly payload?: Payload;
  /** Seconds for which the answer stays fresh, 0 to 2^32 - 1; default 60 (RFC 7252 §5.10.5). */
  readonly maxAge?: number;
}

/** Further properties of a resource. It is enough that one of several methods of a path states them. */
export interface CoapResourceOptions extends ListedResource {
  /**
   * Clients may observe it (RFC 7641); only with GET. Set it only on a resource whose changes are reported by `notify`.
   */
  readonly observable?: boolean;
}

/** Answers a request; undefined, an error, or an answer of wrong types becomes 5.00 "Request unhandled". */
export type CoapHandler = (request: DeviceCoapRequest) => DeviceCoapResponse | undefined | Promise<DeviceCoapResponse | undefined>;

/** Paths reserved for the SDK, with everything below them. */
const RESERVED = ['/p2p', '/tcp-tunnels', '/udp-tunnels', '/iam', CORE_PATH];

const METHOD = oneOf(Object.keys(MethodCode));
const KINDS: Record<keyof CoapResourceOptions, Kind> = { observable: flag, type: text, title: text, action: text, hidden: flag };
const RESPONSE: Record<keyof DeviceCoapResponse, Kind> = {
  status: whole(200, 531),
  contentFormat: whole(0, 0xffff),
  payload: checkedBySetter,
  maxAge: whole(0, 0xffff_ffff),
};

/** Decides which resources a connection sees in the list. */
export interface Verdicts {
  wouldAllow(connection: DeviceConnection, action: string): Promise<boolean>;
}

/** All resources of a device, with the limit on requests. */
export class CoapResources {
  readonly router = new Router<Session>();
  readonly observers: Observers;
  /** Concurrent requests, over all connections. */
  limit = Number.POSITIVE_INFINITY;
  readonly #connections: Connections;
  readonly #list = new ResourceList();
  readonly #log: Log;
  readonly #taken = new Set<string>();
  #running = 0;
  /** Requests under way by connection; connections without any have no entry. */
  readonly #serving = new Map<DeviceConnection, number>();

  constructor(connections: Connections, log: Log, clock: Clock, verdicts: Verdicts) {
    this.#connections = connections;
    this.#log = log;
    this.observers = new Observers({ hasRoom: () => this.#running < this.limit, defer: (run) => clock.defer(run) });
    const describe = async (connection: DeviceConnection, query: readonly string[]): Promise<DeviceCoapResponse> => {
      const payload = await this.#list.describe((action) => verdicts.wouldAllow(connection, action), query);
      return { status: 205, contentFormat: ContentFormat.LINK_FORMAT, payload };
    };
    const answer: Answer = (request) => this.#serve('GET', ({ connection }) => describe(connection, request.query), request);
    this.#route('GET', CORE_PATH, answer, { takesQuery: true });
  }

  /**
   * Adds a resource of the application. `path` starts with `/` and may have `{name}` segments.
   * @throws LocalError INVALID_ARGUMENT (method, path, a path below /p2p, /tcp-tunnels, /udp-tunnels, /iam,
   *   /.well-known/core, observable and not GET, or a type or title that cannot be listed); IN_USE when method and path
   *   have a handler
   */
  add(method: string, path: string, handler: CoapHandler, options: CoapResourceOptions = {}): CoapResource {
    check('the CoAP method', method, METHOD);
    check('the path of a CoAP resource', path, text);
    check('the handler of a CoAP resource', handler, callback);
    checkOptions('a CoAP resource', options, KINDS);
    const { observable = false } = options;
    if (!path.startsWith('/')) throw new LocalError('INVALID_ARGUMENT', 'the path of a CoAP resource starts with "/"');
    if (RESERVED.some((prefix) => path === prefix || path.startsWith(`${prefix}/`))) {
      throw new LocalError(
        'INVALID_ARGUMENT',
        `the CoAP path ${path} is reserved: ${RESERVED.slice(0, -1).join(', ')} and ${RESERVED.at(-1)} belong to the SDK`,
      );
    }
    if (observable && method !== 'GET') throw new LocalError('INVALID_ARGUMENT', `only GET can be observed, not ${method}`);
    const resource = this.observers.resource((request) => this.#serve(method as CoapMethod, handler, request));
    const answer: Answer = (request) => (observable ? this.observers.serve(resource, request) : resource.answer(request));
    const unlist = this.#list.add(method, path, options);
    try {
      const unroute = this.#route(method as CoapMethod, path, answer);
      resource.removed = () => {
        unroute();
        unlist();
      };
    } catch (error) {
      unlist();
      throw error;
    }
    return resource;
  }

  /** Adds one of the SDK's own endpoints. */
  addOwn(method: CoapMethod, path: string, handler: CoapHandler): void {
    this.#route(method, path, (request) => this.#serve(method, handler, request));
    if (!path.startsWith('/p2p/')) this.#list.add(method, path, {});
  }

  /**
   * Adds a resource of the protocol. It gets the session and the exchange, and does not count as a request under way.
   */
  addProtocol(method: CoapMethod, path: string, answer: (request: RoutedRequest<Session>) => CoapReply): void {
    this.#route(method, path, async (request) => answer(request));
  }

  /** Returns the function that removes it. */
  #route(method: CoapMethod, path: string, answer: Answer, options: HandlerOptions = {}): () => void {
    const key = `${method} ${path}`;
    if (this.#taken.has(key)) throw new LocalError('IN_USE', `the CoAP resource ${key} already has a handler`);
    this.router.on(method, path, answer, options);
    this.#taken.add(key);
    let added = true;
    return () => {
      if (!added) return;
      added = false;
      this.router.off(method, path);
      this.#taken.delete(key);
    };
  }

  /** Whether a request of the connection is under way. */
  isServing(connection: DeviceConnection): boolean {
    return this.#serving.has(connection);
  }

  async #serve(method: CoapMethod, handler: CoapHandler, request: RoutedRequest<Session>): Promise<CoapReply> {
    if (this.#running >= this.limit) return textReply(Status.SERVICE_UNAVAILABLE, 'Out of resources');
    const connection = this.#connections.of(request.context);
    this.#count(connection, 1);
    try {
      const response = await handler({
        method,
        path: request.path,
        parameters: request.parameters,
        contentFormat: request.contentFormat,
        payload: request.payload,
        connection,
      });
      return response === undefined ? unhandled() : encodeResponse(response);
    } catch (error) {
      this.#log.error('a CoAP handler failed', { method, path: request.path, error: String(error) });
      return isFailedSave(error) ? textReply(Status.INTERNAL_SERVER_ERROR, 'The device could not save it') : unhandled();
    } finally {
      this.#count(connection, -1);
      this.observers.resume();
    }
  }

  #count(connection: DeviceConnection, by: 1 | -1): void {
    this.#running += by;
    const count = (this.#serving.get(connection) ?? 0) + by;
    if (count === 0) this.#serving.delete(connection);
    else this.#serving.set(connection, count);
  }
}

/** Whether a system error kept a file from being written, as on a full or read-only disk. Its path is only logged. */
function isFailedSave(error: unknown): boolean {
  if (!(error instanceof LocalError) || error.code !== 'FAILED') return false;
  for (let cause = error.cause; cause instanceof Error; cause = cause.cause)
    if (/^E[A-Z]+$/.test(String((cause as { code?: unknown }).code))) return true;
  return false;
}

function unhandled(): CoapReply {
  return textReply(Status.INTERNAL_SERVER_ERROR, 'Request unhandled');
}

function encodeResponse(response: DeviceCoapResponse): CoapReply {
  checkOptions('an answer', response, RESPONSE, ['status']);
  const { status, contentFormat, payload, maxAge } = response;
  const head = { status, ...(maxAge !== undefined && { maxAge }) };
  if (payload === undefined) return head;
  const bytes = bytesOf('the payload of an answer', payload);
  if (!isText(payload)) return { ...head, payload: bytes, ...(contentFormat !== undefined && { contentFormat }) };
  // Text on an error is a diagnostic payload without content format (RFC 7252 §5.5.2); elsewhere it is text/plain.
  if (status >= 400 && contentFormat === undefined) return { ...head, payload: bytes };
  return { ...head, payload: bytes, contentFormat: contentFormat ?? ContentFormat.TEXT_PLAIN };
}
