/**
 * How the owner of a directory invites a user while the device runs: a file-system socket in the directory,
 * `device.sock`, takes one request per connection and sends one JSON document. Only users with access to the directory
 * reach it.
 *
 * Where the socket cannot be created (a path that is too long, a file system without sockets) the device runs without
 * it, and has to be stopped for an invitation.
 */
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { type Log, SvcError } from '../../device/index.ts';
import { MAX_SOCKET_PATH, serveLocally } from '../../platform/node/index.ts';
import type { PairingMode } from '../../protocol/records/index.ts';
import { CommandError, describe, UsageError } from '../frame/errors.ts';

export interface InviteRequest {
  readonly username: string;
  /** Undefined keeps the role. */
  readonly role?: string | undefined;
}

/** A user with a fresh password, and what a person is shown with it. */
export interface Invitation {
  readonly user: { readonly username: string; readonly role?: string; readonly sct?: string };
  readonly password: string;
  /** Fingerprint of the device. */
  readonly fingerprint: string;
  readonly roles: readonly string[];
  /** Pairing modes that are on. */
  readonly modes: readonly PairingMode[];
}

type Answer = { readonly invited: Invitation } | { readonly code: string; readonly message: string };

const SOCKET = 'device.sock';
/** Concurrent connections, ms for one, and most characters of a request. */
export const CONNECTIONS = 4;
export const PATIENCE = 10_000;
export const MAX_REQUEST = 1_024;

/**
 * Serves the owner. This process has the directory to itself (`DeviceData.lock`).
 * @returns a function that stops serving and removes the file
 */
export function serveOwner(directory: string, log: Log, invite: (request: InviteRequest) => Promise<Invitation>): Promise<() => void> {
  const settings = { log, failure: 'svc device invite needs this device to be stopped', connections: CONNECTIONS };
  return serveLocally(join(directory, SOCKET), settings, (socket) => serve(socket, invite));
}

function serve(socket: Socket, invite: (request: InviteRequest) => Promise<Invitation>): void {
  let text = '';
  socket.on('error', () => {});
  socket.setTimeout(PATIENCE, () => socket.destroy());
  socket.setEncoding('utf8');
  socket.on('data', (piece: string) => {
    text += piece;
    if (text.length > MAX_REQUEST) socket.destroy();
  });
  socket.on('end', async () => {
    const answer = await answerTo(text, invite);
    if (!socket.destroyed) socket.end(JSON.stringify(answer));
  });
}

async function answerTo(text: string, invite: (request: InviteRequest) => Promise<Invitation>): Promise<Answer> {
  try {
    return { invited: await invite(requestOf(text)) };
  } catch (error) {
    return {
      code: error instanceof SvcError ? error.code : 'UNKNOWN',
      message: error instanceof SvcError ? error.message : describe(error),
    };
  }
}

/** @throws CommandError */
function requestOf(text: string): InviteRequest {
  const { username, role } = Object(JSON.parse(text)) as { username?: unknown; role?: unknown };
  if (typeof username !== 'string' || (role !== undefined && typeof role !== 'string'))
    throw new CommandError('not a request for an invitation');
  return { username, role };
}

/**
 * Asks the device that runs on the directory; null where none listens.
 * @throws UsageError, CommandError where it refuses or does not answer
 */
export async function askRunning(directory: string, request: InviteRequest): Promise<Invitation | null> {
  const path = join(directory, SOCKET);
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH) return null;
  const text = await exchange(path, JSON.stringify(request));
  if (text === null) return null;
  const answer = text === '' ? undefined : (JSON.parse(text) as Answer);
  if (answer === undefined) throw new CommandError(`the device that runs on ${directory} does not answer: stop it, and try again`);
  if ('invited' in answer) return answer.invited;
  throw ['INVALID_ARGUMENT', 'NOT_FOUND'].includes(answer.code) ? new UsageError(answer.message) : new CommandError(answer.message);
}

/** Returns what the other end sends; empty where that does not come, null where none listens. */
function exchange(path: string, request: string): Promise<string | null> {
  return new Promise((resolve) => {
    let text = '';
    let isOpen = false;
    const socket = connect(path, () => {
      isOpen = true;
      socket.end(request);
    });
    socket.setTimeout(PATIENCE, () => socket.destroy());
    socket.setEncoding('utf8');
    socket.on('data', (piece: string) => {
      text += piece;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(isOpen ? text : null));
  });
}
