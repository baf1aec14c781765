/**
 * Errors of the REST interface: `{"error": {"type", "message"}}` (docs/rest.md), whatever raises them.
 *
 * Unknown routes and methods, malformed URLs, oversized bodies and headers, broken HTTP and our own faults all get this
 * one shape. A response never reveals where in the code it went wrong; the log does.
 */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import type { Log } from '../../platform/environment.ts';

export type ErrorType = 'invalid_request_error' | 'syntax_error' | 'validation_error' | 'authentication_error' | 'forbidden' | 'api_error';

/** A refusal that a route throws. */
export class RestError extends Error {
  readonly statusCode: number;
  readonly type: ErrorType;

  constructor(statusCode: number, type: ErrorType, message: string) {
    super(message);
    this.name = 'RestError';
    this.statusCode = statusCode;
    this.type = type;
  }
}

export const errorSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: { type: 'object', required: ['type', 'message'], properties: { type: { type: 'string' }, message: { type: 'string' } } },
  },
} as const;

/** Returns the handler of everything that is thrown inside a request. */
export function errorHandler(log: Log) {
  return (error: FastifyError | RestError, request: FastifyRequest, reply: FastifyReply): void => {
    const { statusCode, type, message } = refusal(error);
    if (statusCode >= 500)
      log.error('REST request failed', { method: request.method, route: request.routeOptions.url, error: error.message });
    // RFC 9110 §15.5.2: a 401 names the scheme, here that of RFC 6750.
    if (statusCode === 401) reply.header('www-authenticate', 'Bearer realm="svc"');
    reply.code(statusCode).send(body(type, message));
  };
}

/** Handles a method and path that no route has. */
export function notFound(_request: FastifyRequest, reply: FastifyReply): void {
  reply.code(404).send(body('invalid_request_error', 'there is nothing at this method and path'));
}

/** Answers requests at an address without REST. */
export function onlyWebSockets(reply: FastifyReply): FastifyReply {
  return reply.code(404).send(body('invalid_request_error', 'only WebSockets of devices and clients are served here'));
}

/** Answers a request without WebSocket upgrade at a WebSocket path. */
export function upgradeRequired(reply: FastifyReply): FastifyReply {
  reply.code(426).header('upgrade', 'websocket');
  const remedy = 'a proxy in front has to use HTTP/1.1 and pass on the headers Upgrade and Connection';
  return reply.send(body('invalid_request_error', `devices and clients open WebSockets here: ${remedy}`));
}

/**
 * Answers anything that does not parse as HTTP, and closes.
 * @param closingTime ms that the peer has to read the answer and close
 */
export function clientError(error: NodeJS.ErrnoException, socket: Socket, closingTime: number): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  // A peer that neither reads nor closes, or has not completed the TLS handshake, would keep its slot forever.
  socket.setTimeout(closingTime, () => socket.destroy());
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
  const text = JSON.stringify(body('syntax_error', 'the request is not well-formed HTTP, too slow, or its header is too large'));
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json; charset=utf-8`;
  socket.end(`${head}\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`);
}

function refusal(error: FastifyError | RestError): { statusCode: number; type: ErrorType; message: string } {
  if (error instanceof RestError) return error;
  const statusCode = error.statusCode ?? 500;
  if (statusCode >= 500) return { statusCode: 500, type: 'api_error', message: 'internal error' };
  if (statusCode === 404) return { statusCode, type: 'invalid_request_error', message: 'there is nothing at this method and path' };
  const type = error.validation ? 'validation_error' : error.code?.startsWith('FST_ERR_CTP') ? 'syntax_error' : 'invalid_request_error';
  return { statusCode, type, message: error.message };
}

function body(type: ErrorType, message: string): { error: { type: ErrorType; message: string } } {
  return { error: { type, message } };
}
