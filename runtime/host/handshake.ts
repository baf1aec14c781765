/** The options that a connect passes to the endpoint. */
import type { PrepareOptions } from '../../protocol/endpoint/index.ts';
import type { ConnectTarget } from './config.ts';

/** ms for a handshake when `connect` names none. */
const CONNECT_TIMEOUT = 10_000;

/** Returns the endpoint's options for a connect. @param now ms on the clock of the endpoint */
export function handshakeOf(target: ConnectTarget, now: number): PrepareOptions & { readonly firstTimeout?: 250 | 500 } {
  const { name, pin, expect, identity, firstTimeout, migration } = target;
  return {
    name,
    deadline: now + (target.timeout ?? CONNECT_TIMEOUT),
    ...(pin === undefined ? {} : { pin }),
    ...(expect === undefined ? {} : { expect }),
    ...(identity === undefined ? {} : { identity }),
    ...(firstTimeout === undefined ? {} : { firstTimeout }),
    ...(migration === undefined ? {} : { migration }),
  };
}
