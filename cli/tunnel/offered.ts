/** The services of a device, and the error for one that it does not offer. */
import type { Connection, ForwardedService } from '../../client/node.ts';
import { formatStatus } from '../../protocol/coap/index.ts';
import { decodeTunnelService, decodeTunnelServiceIds, type TunnelServiceRecord } from '../../protocol/records/index.ts';
import { CommandError } from '../frame/errors.ts';

type Kind = ForwardedService['kind'];

/** @throws CommandError when this client may not see them */
export async function offeredServices(connection: Connection, kind: Kind): Promise<TunnelServiceRecord[]> {
  const services = [];
  for (const id of await offeredIds(connection, kind))
    services.push(decodeTunnelService(await get(connection, `/${kind}-tunnels/services/${encodeURIComponent(id)}`)));
  return services;
}

/** The error for services of which some are missing on the device. */
export async function missingService(connection: Connection, wanted: readonly ForwardedService[], said: string): Promise<CommandError> {
  try {
    const offered = { tcp: await offeredIds(connection, 'tcp'), udp: await offeredIds(connection, 'udp') };
    const missing = wanted.find(({ kind, id }) => !offered[kind].includes(id));
    if (missing !== undefined) return new CommandError(missingText(missing, offered));
  } catch {
    // The client may not be allowed to see them.
  }
  const kinds = new Set(wanted.map(({ kind }) => kind));
  const other = kinds.has('udp') ? 'TCP services are opened without --udp' : 'UDP services need --udp';
  return new CommandError(`${said} (NOT_FOUND): svc tunnel lists them; ${other}`);
}

function missingText({ kind, id }: ForwardedService, offered: Readonly<Record<Kind, readonly string[]>>): string {
  const name = kind.toUpperCase();
  const there = offered[kind].length === 0 ? `no ${name} service` : offered[kind].join(', ');
  const others = offered[kind === 'tcp' ? 'udp' : 'tcp'];
  const remedy = kind === 'tcp' ? 'UDP services need --udp' : 'TCP services are opened without --udp';
  return `the device has no ${name} service ${JSON.stringify(id)} (NOT_FOUND): it offers ${there}${others.length === 0 ? '' : `; ${remedy}: ${others.join(', ')}`}`;
}

async function offeredIds(connection: Connection, kind: Kind): Promise<string[]> {
  return decodeTunnelServiceIds(await get(connection, `/${kind}-tunnels/services`));
}

async function get(connection: Connection, path: string): Promise<Uint8Array> {
  const { status, bytes } = await connection.get(path);
  if (status === 403)
    throw new CommandError(
      'the device does not allow this client to see its services: pair with it (svc pair) as a user whose role allows it, see svc iam me',
    );
  if (status !== 205) throw new CommandError(`the device answered ${formatStatus(status)} to the request for ${path}`);
  return bytes;
}
