/** Texts of commands that listen: a port in use, with its option, and an address that others can use. */

import { ownAddress } from '../../platform/node/index.ts';
import { PortInUseError } from '../../protocol/errors/index.ts';
import { CommandError } from './errors.ts';
import { isWildcard } from './loopback.ts';

/**
 * Runs part of a command that listens.
 * @param ports by option, such as `--port`, with defaults applied
 * @throws CommandError instead of PORT_IN_USE, also where it is the cause of another error
 */
export async function namingPorts<T>(ports: Readonly<Record<string, number>>, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const taken = error instanceof PortInUseError ? error : (error as Error).cause;
    if (!(taken instanceof PortInUseError)) throw error;
    const { transport, port } = taken;
    const [option] = Object.entries(ports).find(([, each]) => each === port) ?? [];
    if (option === undefined) throw error;
    throw new CommandError(
      `${transport} port ${port} is in use: stop what uses it, or choose another one with ${option}, 0 for a free one (PORT_IN_USE)`,
    );
  }
}

/** An address by which others reach a listener on `host`: one of the host's addresses if it is the wildcard. */
export function reachableHost(host: string): string {
  return isWildcard(host) ? ownAddress() : host;
}
