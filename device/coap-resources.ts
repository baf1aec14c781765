/**
 * CoAP on a device's client connections: the application's resources and the device's own under one router, with a limit on how many
 * requests are worked on at a time.
 *
 * A handler that fails, or returns nothing, is answered 5.00 "Request unhandled"; above the limit a request is answered 5.03.
 */
import {
  type CoapMethod,
  type CoapReply,
  ContentFormat,
  MethodCode,
  type RoutedRequest,
  Router,
  Status,
  textReply,
} from '../protocol/coap/index.ts';
import { LocalError } from '../protocol/errors/index.ts';
import type { Log } from '../transport/environment.ts';
import type { Session } from '../transport/session/index.ts';
import type { Connections, DeviceConnection } from './connections.ts';

/** A client's request, as a handler gets it. */
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

/** What a handler answers. */
export interface DeviceCoapResponse {
  /** Class × 100 + detail: 205 is 2.05 Content. */
  readonly status: number;
  /** Default: text (0) for a text payload, none for bytes. */
  readonly contentFormat?: number;
  readonly payload?: Uint8Array | string;
}

/** Answers a request; undefined, or an error, becomes 5.00 "Request unhandled". */
export type CoapHandler = (request: DeviceCoapRequest) => DeviceCoapResponse | undefined | Promise<DeviceCoapResponse | undefined>;

/** Paths the SDK keeps for itself, and what lies below them. */
const RESERVED = ['/p2p', '/tcp-tunnels', '/iam'];

/** Every resource of a device, with the limit on requests. */
export class CoapResources {
  readonly router = new Router<Session>();
  /** Requests worked on at a time, over all connections. */
  limit = Number.POSITIVE_INFINITY;
  readonly #connections: Connections;
  readonly #log: Log;
  readonly #taken = new Set<string>();
  #running = 0;

  constructor(connections: Connections, log: Log) {
    this.#connections = connections;
    this.#log = log;
  }

  /**
   * A resource of the application. `path` starts with `/` and may have `{name}` segments. Returns the function that removes it.
   * @throws LocalError INVALID_ARGUMENT (method, path, or a path below /p2p, /tcp-tunnels, /iam); IN_USE when method and path have a handler
   */
  add(method: string, path: string, handler: CoapHandler): () => void {
    if (!Object.hasOwn(MethodCode, method)) throw new LocalError('INVALID_ARGUMENT', 'the CoAP method must be GET, POST, PUT or DELETE');
    if (!path.startsWith('/')) throw new LocalError('INVALID_ARGUMENT', 'the path of a CoAP resource starts with "/"');
    if (RESERVED.some((prefix) => path === prefix || path.startsWith(`${prefix}/`))) {
      throw new LocalError('INVALID_ARGUMENT', `the CoAP path ${path} is reserved: /p2p, /tcp-tunnels and /iam belong to the SDK`);
    }
    return this.addOwn(method as CoapMethod, path, handler);
  }

  /** One of the SDK's own endpoints. Returns the function that removes it. */
  addOwn(method: CoapMethod, path: string, handler: CoapHandler): () => void {
    const key = `${method} ${path}`;
    if (this.#taken.has(key)) throw new LocalError('IN_USE', `the CoAP resource ${key} has a handler`);
    this.router.on(method, path, (request) => this.#serve(method, handler, request));
    this.#taken.add(key);
    let added = true;
    return () => {
      if (!added) return;
      added = false;
      this.router.off(method, path);
      this.#taken.delete(key);
    };
  }

  async #serve(method: CoapMethod, handler: CoapHandler, request: RoutedRequest<Session>): Promise<CoapReply> {
    if (this.#running >= this.limit) return textReply(Status.SERVICE_UNAVAILABLE, 'Out of resources');
    this.#running++;
    try {
      const response = await handler({
        method,
        path: request.path,
        parameters: request.parameters,
        contentFormat: request.contentFormat,
        payload: request.payload,
        connection: this.#connections.of(request.context),
      });
      return response === undefined ? unhandled() : encodeResponse(response);
    } catch (error) {
      this.#log.error('a CoAP handler failed', { method, path: request.path, error: String(error) });
      return unhandled();
    } finally {
      this.#running--;
    }
  }
}

function unhandled(): CoapReply {
  return textReply(Status.INTERNAL_SERVER_ERROR, 'Request unhandled');
}

function encodeResponse({ status, contentFormat, payload }: DeviceCoapResponse): CoapReply {
  if (payload === undefined) return { status };
  if (typeof payload !== 'string') return { status, payload, ...(contentFormat !== undefined && { contentFormat }) };
  const bytes = new TextEncoder().encode(payload);
  // Text on an error has no content format (reference §0); elsewhere text is text.
  if (status >= 400 && contentFormat === undefined) return { status, payload: bytes };
  return { status, payload: bytes, contentFormat: contentFormat ?? ContentFormat.TEXT_PLAIN };
}
