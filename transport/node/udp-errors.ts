/** What the system says when a UDP socket cannot be opened, as errors of ours with one line that says what to do. */
import { LocalError, PortInUseError } from '../../protocol/errors/index.ts';
import type { BindOptions } from '../environment.ts';

const UNREACHABLE: ReadonlySet<string> = new Set(['ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL', 'ENETDOWN', 'EHOSTDOWN']);

/** The host has no such address family, or it is switched off. */
export function isMissingFamily(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL' || code === 'EPROTONOSUPPORT' || code === 'EINVAL';
}

/** The system has no way to the destination of a datagram. */
export function isUnreachable(error: unknown): boolean {
  return UNREACHABLE.has((error as NodeJS.ErrnoException | null | undefined)?.code ?? '');
}

/** The error of ours for what `bind` failed with: PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT, else UNKNOWN. */
export function bindError(error: unknown, { port, host }: BindOptions): Error {
  if (error instanceof LocalError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const cause = { cause: error };
  switch (code) {
    case 'EADDRINUSE':
      return new PortInUseError('UDP', port, cause);
    case 'EACCES':
    case 'EPERM':
      return new LocalError('PRIVILEGED_PORT', `this user may not open UDP port ${port}: choose a port of 1024 or above`, cause);
    case 'EADDRNOTAVAIL':
    case 'EAFNOSUPPORT':
    case 'EINVAL':
    case 'ENOTFOUND':
      return new LocalError('INVALID_ARGUMENT', `${host ?? 'the wildcard'} is not an address of this host: choose one of its own`, cause);
    default:
      return new LocalError('UNKNOWN', `UDP port ${port} cannot be opened: ${message}`, cause);
  }
}
