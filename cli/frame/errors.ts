/**
 * Failures of `svc`: every error becomes an exit code and one line on standard error with the problem and the remedy.
 *
 * A command throws; main.ts calls `describe` and `exitCode` once. A stack trace appears only with SVC_DEBUG=1.
 */
import { CommanderError } from 'commander';
import type { ChannelFailures } from '../../client/node.ts';
import { printable } from '../../protocol/coap/index.ts';
import { NoChannelsError } from '../../protocol/errors/index.ts';

export const ExitCode = { OK: 0, FAILURE: 1, USAGE: 2, INTERRUPTED: 130 } as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** The last line of every command's --help. */
export const EXIT_CODES =
  'Exit codes: 0 done, 1 it failed (one line on standard error says why), 2 wrong use, 130 interrupted before it was done.';

/** The command was given something it cannot use; the message names the option and the remedy. */
export class UsageError extends Error {}

/** The command could not do its work; the message is for a person and complete. */
export class CommandError extends Error {}

/** SIGINT or SIGTERM arrived before the work was done. */
export class Interrupted extends Error {
  constructor(message = 'interrupted') {
    super(message);
  }
}

/** The exit code for an error of a command. */
export function exitCode(error: unknown): ExitCode {
  if (error instanceof Interrupted) return ExitCode.INTERRUPTED;
  if (error instanceof UsageError) return ExitCode.USAGE;
  if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.OK : ExitCode.USAGE;
  return ExitCode.FAILURE;
}

/** One line for a person, without a trailing newline. */
export function describe(error: unknown): string {
  return oneLine(withHint(error));
}

/** The remedy where the device does not allow this client something. */
export const NOT_ALLOWED =
  '`svc iam me` shows your user and its role; ask an administrator of the device for another role, or for an invitation if you are not a user, or were one before the device was set up again';

/** Remedies for the codes that a person can act on; they follow the message of the error. */
const HINTS: Record<string, string> = {
  CERTIFICATE_VALIDATION_FAILED:
    'give the fingerprint that svc basestation prints with --server-fingerprint, or the roots of its certificate with --root-certs FILE',
  FINGERPRINT_MISMATCH:
    'an attacker may be in between, or it was set up again: if so, give the fingerprint that svc basestation prints with --server-fingerprint; with TLS, see its /.well-known/svc',
  CONNECTION_REFUSED: 'check the address, that it runs there, and that firewalls allow UDP to its port, and TCP for https and WebSockets',
  NOT_ATTACHED: 'the device is known but not connected to the base station now: check that it runs',
  TOKEN_REJECTED:
    'give a server connect token (--sct-file) or a server key (--server-key-file, with a fresh token in --jwt-file if it requires one); if your user was deleted or the device was set up again, ask for a new invitation: `svc pair - --replace` reads it',
  UNKNOWN_SERVER_KEY: 'create a key on the base station with `svc admin key add`',
  UNKNOWN_PRODUCT_ID: 'register it on the base station with `svc admin product add`',
  UNKNOWN_FINGERPRINT: 'register the device on the base station with `svc admin device add`, as printed at its start',
  WRONG_PRODUCT_ID: 'its key is registered for another product: check --product, or register it again',
  WRONG_DEVICE_ID: 'its key is registered for another device: check --device-id, or register it again',
  UNKNOWN_DEVICE_ID: 'register it on the base station with `svc admin device add`',
  FORBIDDEN: `you are not allowed to do this: ${NOT_ALLOWED}`,
  BLOCKED_BY_DEVICE_CONFIGURATION: `you are not allowed to do this: ${NOT_ALLOWED}`,
  PAIRING_MODE_DISABLED: '`svc iam modes` shows what the device offers over this connection',
  AUTHENTICATION_ERROR:
    'check user name and password; an invitation works once: an administrator creates a new one with `svc iam invite NAME --again`, the owner with `svc device invite NAME`',
  USER_DOES_NOT_EXIST: '`svc iam users list` shows the users, `svc pair` makes this client one',
  USERNAME_EXISTS: 'take another name, or invite that user again with `svc iam invite NAME --again`',
  ROLE_DOES_NOT_EXIST: '`svc iam roles` shows the roles',
  SQLITE_FULL: 'make room on the disk of the data directory, then try again; nothing was changed',
  TIMEOUT: 'check that the peer runs and that UDP, or TCP for https, reaches it',
};

/** Remedies for codes that mean something else when the base station refuses a connect. */
const STATION_HINTS: Record<string, string> = {
  FORBIDDEN: 'if the server key requires a token, give a fresh one with --jwt-file; if it requires none, leave the token out',
};

/** The hint for an error code, if there is one. */
export function hint(code: string): string | undefined {
  return HINTS[code];
}

const SYSTEM: Record<string, string> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of the path is not a directory',
  EEXIST: 'it exists already',
  ENOSPC: 'no space left on the device',
  EROFS: 'the file system is read-only',
  EADDRINUSE: 'the port is in use: choose another one, or 0 for a free one',
  EADDRNOTAVAIL: 'the address belongs to no interface of this machine',
  ECONNREFUSED: 'connection refused: check that the peer runs',
};

/** Describes an error of the system in plain words; undefined for any other. */
export function systemProblem(error: unknown): string | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? SYSTEM[code] : undefined;
}

function withHint(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof CommanderError) return plain(error.message);
  if (error instanceof UsageError || error instanceof CommandError || error instanceof Interrupted) return error.message;
  if (error instanceof NoChannelsError) return noChannels(error);
  const { code, path } = error as Error & { code?: unknown; path?: unknown };
  if (typeof code !== 'string') return `internal error: ${error.message} (run again with SVC_DEBUG=1 for details)`;
  const system = SYSTEM[code];
  if (system !== undefined) return typeof path === 'string' ? `${path}: ${system}` : `${system} (${error.message})`;
  return withAdvice(error.message, code);
}

/** Commander's message, without its own words for an argument of a command. */
function plain(message: string): string {
  return message.replace(/^error: /, '').replace(/^command-argument value '(.*)' is invalid for argument '(.*)'\. /s, '$1 is not a $2: ');
}

/** Returns the reasons why the channels failed. */
function noChannels(error: NoChannelsError): string {
  const { local, remote, direct } = (error.cause ?? {}) as ChannelFailures;
  const reasons = [];
  if (remote !== undefined) reasons.push(`through the base station: ${withAdvice(remote.message, remote.code, STATION_HINTS)}`);
  if (direct !== undefined) reasons.push(`directly: ${withAdvice(direct.message, direct.code)}`);
  // A stranger on the local network is no reason: `svc doctor` shows it.
  if (local !== undefined && !(local.code === 'FINGERPRINT_MISMATCH' && remote !== undefined))
    reasons.push(`on the local network: ${withAdvice(local.message, local.code)}`);
  return reasons.length === 0 ? error.message : `no way to the device; ${reasons.join('; ')}`;
}

function withAdvice(message: string, code: string, hints: Record<string, string> = {}): string {
  const advice = hints[code] ?? HINTS[code];
  return advice === undefined ? `${message} (${code})` : `${message} (${code}): ${advice}`;
}

/** Returns one line without control characters: parts of a message may come from the peer. */
function oneLine(text: string): string {
  return printable(text.replace(/\s*[\r\n]+\s*/g, ' '));
}
