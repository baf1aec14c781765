/**
 * `svc tunnel`: local ports, or standard input and output, that lead to TCP and UDP services of a device. Without a
 * service it lists those that the device offers.
 */
import { Command, Option } from 'commander';
import { formatHostPort } from '../protocol/records/index.ts';
import { type OpenConnection, withConnection } from './client/open.ts';
import { secretsFromInput } from './client/secrets.ts';
import { type TargetOptions, withTarget } from './client/target.ts';
import { address, collect, listenPort } from './frame/arguments.ts';
import { UsageError } from './frame/errors.ts';
import { table } from './frame/table.ts';
import { forward } from './tunnel/forward.ts';
import { offeredServices } from './tunnel/offered.ts';
import { givenServices } from './tunnel/services.ts';
import { carryStandardStreams } from './tunnel/stdio.ts';

interface TunnelOptions extends TargetOptions {
  localPort?: number;
  listen?: string;
  stdio?: boolean;
  udp?: string[];
}

const LOOPBACK = '127.0.0.1';

const NOTE = `
  svc tunnel                                      list the TCP services, with --udp the UDP services
  svc tunnel web:8081 ssh:2222 --udp dns:5300     each service on its own local port; without a number: a free port
  ssh -o ProxyCommand='svc tunnel --stdio ssh -d home' user@home

Every process that reaches a local port uses the service with the rights of this client: on 127.0.0.1, the default, that is every process of
this machine. When the connection to the device is lost, it is reopened: the ports stay open, open TCP connections end, and new ones wait up
to 10 s for it.

Exit code 0 at Ctrl-C (130 before the ports are open); 1 when the first connect fails, and later when the device has another key, or this
client or a service is refused. With --stdio: 0 when both directions have ended, 1 when the service cannot be reached or the connection is lost.`;

/** The command `svc tunnel`. */
export function tunnelCommand(): Command {
  const command = new Command('tunnel')
    .description('open local TCP and UDP ports to services of a device; without a service: list them')
    .argument('[services...]', 'service, or service:port with the local port')
    .addOption(
      new Option('--udp [service]', 'a UDP service, or service:port; repeatable. Without a value: all given services are UDP services')
        .argParser(collect((text) => text))
        .preset(''),
    )
    .addOption(new Option('--local-port <port>', 'local port of a single service, 0 for a free one (default: 0)').argParser(listenPort))
    .addOption(
      new Option(
        '--listen <address>',
        'numeric address to listen on; beyond loopback every host that reaches it may use the services (default: 127.0.0.1)',
      ).argParser(address),
    )
    .option('--stdio', 'one TCP service over standard input and output, for the ProxyCommand of ssh')
    .addHelpText('after', NOTE);
  return withTarget(command).action(run);
}

async function run(given: string[], options: TunnelOptions): Promise<void> {
  const { udp = [], localPort, listen, stdio } = options;
  const services = givenServices({ services: given, udp, localPort });
  if (stdio === true) {
    requireStdio(options, given);
    return withConnection(options, ({ connection }) => carryStandardStreams(connection, services[0]!));
  }
  if (services.length > 0) {
    const how = { services, listen: listen ?? LOOPBACK, renewsToken: options.jwtFile !== undefined };
    return withConnection(options, (opened) => forward(opened, how), { untilStopped: true });
  }
  if (listen !== undefined) throw new UsageError('--listen has no effect without a service: name one, or leave it out');
  return withConnection(options, (opened) => list(opened, udp.length > 0 ? 'udp' : 'tcp'));
}

/** Checks the options of --stdio: standard input and output belong to the service. */
function requireStdio(options: TunnelOptions, given: readonly string[]): void {
  const { udp = [], localPort, listen, json } = options;
  if (udp.length > 0) throw new UsageError('--stdio carries a TCP connection: leave --udp out');
  if (given.length !== 1) throw new UsageError('--stdio carries one service: name one, as in svc tunnel --stdio ssh');
  if (localPort !== undefined || listen !== undefined || given[0]!.includes(':'))
    throw new UsageError('--stdio opens no local port: leave the port, --local-port and --listen out');
  if (json === true) throw new UsageError('--json has no effect with --stdio, where standard output carries the service: leave it out');
  if (secretsFromInput(options) > 0) throw new UsageError('with --stdio standard input belongs to the service: give secrets in files');
}

async function list({ connection, output }: OpenConnection, kind: 'tcp' | 'udp'): Promise<void> {
  const services = await offeredServices(connection, kind);
  const rows = services.map(({ id, type, host, port }) => [id, type, formatHostPort({ host, port })]);
  output.result(
    services,
    rows.length === 0 ? `the device offers no ${kind.toUpperCase()} service` : table(['service', 'type', 'leads to'], rows),
  );
  if (kind === 'udp' || output.json) return;
  const others = await offeredServices(connection, 'udp').catch(() => []);
  if (others.length > 0) output.note(`and by UDP: ${others.map(({ id }) => id).join(', ')} (svc tunnel --udp lists them)`);
}
