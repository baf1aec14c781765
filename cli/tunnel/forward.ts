/** `svc tunnel`: local ports that lead to services, over successive connections, until Ctrl-C. */
import {
  type ForwardedPort,
  type ForwardedService,
  type ForwardingEvent,
  LocalPortError,
  nodeEnvironment,
  PortForwarding,
  SvcError,
} from '../../client/node.ts';
import { formatHostPort } from '../../protocol/records/index.ts';
import type { OpenConnection } from '../client/open.ts';
import { wayOf } from '../client/way.ts';
import { CommandError, describe } from '../frame/errors.ts';
import { isLoopback, reachedAt } from '../frame/loopback.ts';
import type { Output } from '../frame/output.ts';
import { stopped } from '../frame/signals.ts';
import { TunnelNews } from './news.ts';
import { missingService } from './offered.ts';

export interface ForwardOptions {
  readonly services: readonly ForwardedService[];
  /** Numeric. */
  readonly listen: string;
  /** Each connect may have another token of an issuer. */
  readonly renewsToken: boolean;
}

/** Runs until the signal fires. @throws CommandError when it ends before */
export async function forward(opened: OpenConnection, options: ForwardOptions): Promise<void> {
  const { connection, connectAgain, output, signal, device } = opened;
  const environment = nodeEnvironment();
  let end = (_error: SvcError): void => {};
  const ended = new Promise<SvcError>((resolve) => {
    end = resolve;
  });
  const news = new TunnelNews(output, device, environment.clock);
  const onEvent = (event: ForwardingEvent): void => {
    if (event.kind === 'ended') end(event.error);
    else news.report(event);
  };
  const { services, listen: address, renewsToken } = options;
  const forwarding = await PortForwarding.open({
    ...{ environment, connection, connect: connectAgain, services, address, renewsToken, onEvent },
  }).catch((error: unknown) => explain(error, opened, options));
  try {
    announce(forwarding.ports, opened, address);
    const error = await Promise.race([stopped(signal), ended]);
    if (error !== undefined) throw new CommandError(`the tunnel to ${device} has ended: ${describe(error)}`);
  } finally {
    await forwarding.close();
  }
}

async function explain(error: unknown, { connection }: OpenConnection, { services }: ForwardOptions): Promise<never> {
  if (error instanceof LocalPortError) throw blockedPort(error);
  if (error instanceof SvcError && error.code === 'NOT_FOUND') throw await missingService(connection, services, error.message);
  throw error;
}

function blockedPort({ service, code, message }: LocalPortError): unknown {
  if (code !== 'PORT_IN_USE' && code !== 'PRIVILEGED_PORT') return new CommandError(`${message} (${code}): see --listen`);
  const [problem] = message.split(':');
  const other = Math.max(1024, ((service.localPort ?? 0) + 1) % 65_536);
  return new CommandError(
    `${problem} (${code}): choose another local port for the service, as in ${service.id}:${other}, or with --local-port; 0 takes a free one`,
  );
}

function announce(ports: readonly ForwardedPort[], { connection, output, device }: OpenConnection, listen: string): void {
  warnBeyondLoopback(ports, output, device, listen);
  // The connection may have been lost since.
  const way = connection.isConnected ? wayOf(connection) : undefined;
  for (const { kind, port, service } of ports) {
    const { id, type } = service;
    const place = formatHostPort({ host: reachedAt(listen), port });
    const url = kind === 'tcp' && (type === 'http' || type === 'https') ? `${type}://${place}` : undefined;
    const document = { event: 'listening', service: id, protocol: kind, host: listen, port, ...(url !== undefined && { url }) };
    output.result({ ...document, over: way?.over }, `${id}  ${url ?? place}${kind === 'udp' ? ' (UDP)' : ''}`);
  }
  output.note(`${ports.length === 1 ? 'It leads' : 'They lead'} to ${device}${way === undefined ? '' : `, ${way.text}`}; Ctrl-C ends it`);
}

function warnBeyondLoopback(ports: readonly ForwardedPort[], output: Output, device: string, listen: string): void {
  if (isLoopback(listen)) return;
  const names = ports.map(({ service, port }) => `${service.id} (port ${port})`).join(', ');
  output.warn(`every host that reaches ${listen} may use ${names} of ${device} with the rights of this client, without a password`);
}
