/** `svc tunnel`: a port on 127.0.0.1 that leads to a TCP or UDP service of a device, until Ctrl-C. Without a service it lists what the device offers. */
import { Command, Option } from 'commander';
import { SvcError } from '../client/node.ts';
import { formatStatus } from '../protocol/coap/index.ts';
import { decodeTunnelService, decodeTunnelServiceIds } from '../protocol/records/index.ts';
import { type Opened, withConnection } from './client/open.ts';
import { formatAddress, type TargetOptions, withTarget } from './client/target.ts';
import { followWay, wayOf } from './client/way.ts';
import { listenPort } from './frame/arguments.ts';
import { CommandError } from './frame/errors.ts';
import { stopped } from './frame/signals.ts';

interface TunnelOptions extends TargetOptions {
  localPort: number;
  udp?: boolean;
}

/** The command `svc tunnel`. */
export function tunnelCommand(): Command {
  const command = new Command('tunnel')
    .description('open a local TCP or UDP port to a service of a device; without a service: list them')
    .argument('[service]', 'id of the service')
    .option('--udp', 'a UDP service instead of a TCP service')
    .addOption(new Option('--local-port <port>', 'port on 127.0.0.1, 0 for a free one').argParser(listenPort).default(0, '0'));
  command.addHelpText('after', '\nIt ends when the connection to the device ends, with exit code 1: start it again then.');
  return withTarget(command).action((service: string | undefined, options: TunnelOptions) =>
    service === undefined
      ? withConnection(options, (opened) => list(opened, options))
      : withConnection(options, (opened) => open(opened, service, options), { untilStopped: true }),
  );
}

async function open({ connection, output, signal }: Opened, service: string, { localPort, udp }: TunnelOptions): Promise<void> {
  const tunnel = udp === true ? connection.createUdpTunnel() : connection.createTcpTunnel();
  await tunnel.open(service, localPort).catch((error: unknown) => {
    if (!(error instanceof SvcError) || error.code !== 'NOT_FOUND') throw error;
    const other = udp === true ? 'TCP services are opened without --udp' : 'UDP services need --udp';
    throw new CommandError(`${error.message} (${error.code}): svc tunnel lists them; ${other}`);
  });
  const port = tunnel.getLocalPort();
  const { over, text } = wayOf(connection);
  output.result(
    { event: 'listening', service, host: '127.0.0.1', port, over },
    `${udp === true ? 'UDP ' : ''}127.0.0.1:${port} leads to ${service}, ${text}; Ctrl-C ends it`,
  );
  followWay(connection, (change) => output.note(change));
  const closed = new Promise<void>((resolve) =>
    connection.addConnectionEventsListener({ onEvent: (event) => event === 'CLOSED' && resolve() }),
  );
  await Promise.race([stopped(signal), closed]);
  if (!signal.aborted) throw new CommandError(`the connection to the device ended: ${connection.closeReason?.message ?? 'closed'}`);
}

async function list({ connection, output }: Opened, { udp }: TunnelOptions): Promise<void> {
  const path = udp === true ? '/udp-tunnels/services' : '/tcp-tunnels/services';
  const ids = decodeTunnelServiceIds(await get(connection, path));
  const services = [];
  for (const id of ids) services.push(decodeTunnelService(await get(connection, `${path}/${encodeURIComponent(id)}`)));
  const text = services.map(({ id, type, host, port }) => `${id}  ${type}  ${formatAddress({ host, port })}`);
  output.result(services, text.length === 0 ? `the device offers no ${udp === true ? 'UDP' : 'TCP'} service` : text);
}

async function get(connection: Opened['connection'], path: string): Promise<Uint8Array> {
  const coap = connection.createCoap('GET', path);
  await coap.execute();
  const status = coap.getResponseStatusCode();
  if (status === 403)
    throw new CommandError(
      'the device does not allow this client to see its services: pair with it (svc pair) as a user whose role allows it, see svc iam me',
    );
  if (status !== 205) throw new CommandError(`the device answered ${formatStatus(status)} when asked for ${path}`);
  return coap.getResponsePayload();
}
