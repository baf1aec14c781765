/** Maps system errors of opening a UDP socket to our own errors, with one line that gives the remedy. */
import { LocalError, PortInUseError } from '../../protocol/errors/index.ts';
import type { BindOptions } from '../environment.ts';

const UNREACHABLE: ReadonlySet<string> = new Set(['ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL', 'ENETDOWN', 'EHOSTDOWN']);

/** Returns whether the host lacks the address family, or has it disabled. */
export function isMissingFamily(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL' || code === 'EPROTONOSUPPORT' || code === 'EINVAL';
}

/** Returns whether the system has no route to a datagram's destination. */
export function isUnreachable(error: unknown): boolean {
  return UNREACHABLE.has((error as NodeJS.ErrnoException | null | undefined)?.code ?? '');
}

/** Maps an error of `bind`: PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT, else UNKNOWN. */
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
