/**
 * Asks a device whether this client may use a service (`GET /tcp-tunnels/connect/:id` or `/udp-tunnels/connect/:id`);
 * the answer names its stream port.
 */
import { isText, type Kind } from '../../protocol/arguments.ts';
import { diagnosticText, formatStatus, Status } from '../../protocol/coap/index.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { decodeTunnelService, type TunnelServiceRecord } from '../../protocol/records/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import { whileConnected } from '../while-connected.ts';

export type TunnelKind = 'tcp' | 'udp';
export const tunnelKinds: readonly TunnelKind[] = ['tcp', 'udp'];

/** Check the id of a service with it before `askService`. */
export const SERVICE_ID: Kind = [(id) => isText(id) && id !== '' && !id.includes('/'), 'a text without "/"'];

/** A service of the device of a session. */
export interface FoundService {
  readonly session: Session;
  readonly record: TunnelServiceRecord;
}

/** Most bytes of the device's text shown. */
const MAX_DIAGNOSTIC = 256;

/**
 * @throws NOT_FOUND (no such service); FORBIDDEN; BAD_RESPONSE; STOPPED (the connection was lost, or `signal` fired);
 *   TIMEOUT; PARSE
 */
export async function askService(
  session: Session,
  kind: TunnelKind,
  id: string,
  options: { signal?: AbortSignal } = {},
): Promise<FoundService> {
  const request = { method: 'GET', path: `/${kind}-tunnels/connect/${encodeURIComponent(id)}`, ...options } as const;
  const response = await whileConnected(session, () => session.request(request));
  if (response.status === Status.NOT_FOUND) throw new RemoteError('NOT_FOUND', `the device has no tunnel service ${JSON.stringify(id)}`);
  if (response.status === Status.FORBIDDEN)
    throw new RemoteError('FORBIDDEN', `the device does not allow this client to use the tunnel service ${JSON.stringify(id)}`);
  if (response.status !== Status.CONTENT) {
    const said = diagnosticText(response, MAX_DIAGNOSTIC);
    const answer = `${formatStatus(response.status)}${said === '' ? '' : ` ("${said}")`}`;
    throw new RemoteError('BAD_RESPONSE', `the device answered ${answer} to the request for a tunnel`);
  }
  return { session, record: decodeTunnelService(response.payload) };
}
