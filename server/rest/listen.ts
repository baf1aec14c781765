/**
 * The addresses of the HTTP server: REST on one address, WebSockets on the address of UDP, both on one port number.
 *
 * If one of the two is all addresses, or both are the same, there is one listener: a port cannot be bound both on
 * loopback and on all addresses of its family. Then the local address of a connection decides whether it may make
 * requests (`servesAt`); others may only become WebSockets.
 */
import { createServer, type Server, type Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { canonicalAddress } from '../../protocol/address.ts';
import { LocalError, PortInUseError } from '../../protocol/errors/index.ts';

/** The addresses of a server, numeric. */
export interface HttpAddresses {
  /** Address of REST; undefined: loopback. */
  readonly rest: string | undefined;
  /** Address of WebSockets; undefined: all. */
  readonly webSockets: string | undefined;
}

const LOOPBACK = '127.0.0.1';
const ALL_IPV6 = '::';
const ALL_IPV4 = '0.0.0.0';

/** A listening server. */
export interface Listener {
  readonly port: number;
  /** Stops listening on the second address, if there is one; the application closes the first listener. */
  close(): void;
}

/**
 * Returns a check whether a connection may make requests: it must have arrived at the address of REST, and over
 * loopback only from this machine.
 */
export function servesAt(rest: string | undefined): (socket: Pick<Socket, 'localAddress' | 'remoteAddress'>) => boolean {
  const address = rest === undefined ? null : canonicalAddress(rest);
  if (address === ALL_IPV6) return () => true;
  return ({ localAddress, remoteAddress }) => {
    const local = canonicalAddress(localAddress ?? '');
    if (address === ALL_IPV4) return local !== null && isIPv4(local);
    if (address !== null && !isLoopback(address)) return local === address;
    return isLoopback(local ?? '') && isLoopback(canonicalAddress(remoteAddress ?? '') ?? '') && (address === null || local === address);
  };
}

export function isLoopback(address: string): boolean {
  return address === '::1' || /^127\./.test(address);
}

/**
 * Listens on both addresses.
 * @throws LocalError as `listen`
 */
export async function listenAt(app: FastifyInstance, { rest = LOOPBACK, webSockets }: HttpAddresses, port: number): Promise<Listener> {
  const other = webSockets ?? ALL_IPV6;
  const covering = [other, rest].find((address) => covers(address, rest) && covers(address, other));
  if (covering === undefined) {
    const bound = await listen(app, other, port);
    const second = await listenBeside(app, rest, bound);
    return { port: bound, close: () => void second.close() };
  }
  if (canonicalAddress(covering) !== canonicalAddress(rest)) await checkOwn(rest);
  return { port: await listenEverywhere(app, covering, port), close: () => {} };
}

/** Returns whether a listener at the first address gets the connections to the second. */
function covers(listener: string, address: string): boolean {
  const [at, to] = [canonicalAddress(listener), canonicalAddress(address)];
  return at === to || at === ALL_IPV6 || (at === ALL_IPV4 && to !== null && isIPv4(to));
}

/** @param address canonical */
function isIPv4(address: string): boolean {
  return !address.includes(':');
}

/**
 * Checks an address, since a listener for all addresses does not.
 * @throws LocalError INVALID_ARGUMENT unless the address is one of this machine's
 */
async function checkOwn(address: string): Promise<void> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => {
    probe.once('error', (error) => reject(listenError(error, address, 0)));
    probe.listen({ host: address, port: 0 }, resolve);
  });
  probe.close();
}

/** Listens on all addresses. On a host without IPv6 `::` means IPv4. */
async function listenEverywhere(app: FastifyInstance, host: string, port: number): Promise<number> {
  try {
    return await listen(app, host, port);
  } catch (error) {
    const isMissing = canonicalAddress(host) === ALL_IPV6 && error instanceof LocalError && error.code === 'INVALID_ARGUMENT';
    if (!isMissing) throw error;
    return listen(app, ALL_IPV4, port);
  }
}

/**
 * Listens on TCP.
 * @returns the port
 * @throws LocalError PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT (host is not an address of this machine)
 */
export async function listen(app: FastifyInstance, host: string, port: number): Promise<number> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    throw listenError(error as NodeJS.ErrnoException, host, port);
  }
  return (app.server.address() as { port: number }).port;
}

/** Adds a second listener to the same server. */
function listenBeside(app: FastifyInstance, host: string, port: number): Promise<Server> {
  const server = createServer((socket) => app.server.emit('connection', socket));
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(listenError(error, host, port)));
    server.listen({ host, port }, () => resolve(server));
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  switch (error.code) {
    case 'EADDRINUSE':
      return new PortInUseError('TCP', port, { cause: error });
    case 'EACCES':
      return new LocalError('PRIVILEGED_PORT', `this user may not listen on TCP port ${port}: choose one above 1023 with --port`);
    case 'EADDRNOTAVAIL':
    case 'EAFNOSUPPORT':
    case 'ENOTFOUND':
      return new LocalError('INVALID_ARGUMENT', `${host} is not an address of this machine`);
    default:
      return error;
  }
}
