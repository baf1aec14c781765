/** `svc gateway`: a device's CoAP endpoints on a local UDP port, for any CoAP tool, until Ctrl-C. */
import { Command, Option } from 'commander';
import { Gateway, type GatewayState, nodeEnvironment, type SvcError } from '../client/node.ts';
import { formatHostPort } from '../protocol/records/index.ts';
import { type OpenConnection, withConnection } from './client/open.ts';
import { type TargetOptions, withTarget } from './client/target.ts';
import { address, integer, listenPort } from './frame/arguments.ts';
import { CommandError, describe } from './frame/errors.ts';
import { namingPorts, reachableHost } from './frame/listening.ts';
import { isLoopback } from './frame/loopback.ts';
import type { Output } from './frame/output.ts';
import { stopped } from './frame/signals.ts';

interface GatewayOptions extends TargetOptions {
  port: number;
  listen: string;
  requestTimeout: number;
}

const NOTE = `
Every process that reaches the port uses the device with the rights of this client, without a password: on 127.0.0.1, the default,
that is every process of this machine. --listen with an address other than loopback opens the device to a network.

Methods, content formats, Observe (RFC 7641) and blocks (RFC 7959) pass; the device may refuse a query. While the
connection to the device is lost, requests are answered 5.03. It is reopened automatically, until the device has another key, or the base
station refuses this client.

  coap-client -m get coap://127.0.0.1:<port>/thermostat/temperature
  coap-client -m get -s 60 coap://127.0.0.1:<port>/thermostat/temperature     observe for a minute`;

/** The command `svc gateway`. */
export function gatewayCommand(): Command {
  const command = new Command('gateway')
    .description("offer a device's CoAP endpoints on a local UDP port, for any CoAP tool")
    .addOption(new Option('--port <port>', 'UDP port, 0 for a free one').argParser(listenPort).default(0, '0'))
    .addOption(
      new Option('--listen <address>', 'numeric address to listen on; beyond loopback every host that reaches it may use the device')
        .argParser(address)
        .default('127.0.0.1'),
    )
    .addOption(
      new Option('--request-timeout <seconds>', 'longest time for an answer of the device, 1 to 120; then 5.04')
        .argParser((text) => integer(text, 1, 120, 'give whole seconds from 1 to 120') * 1000)
        .default(60_000, '60'),
    )
    .addHelpText('after', NOTE);
  return withTarget(command).action((options: GatewayOptions) =>
    withConnection(options, (opened) => serve(opened, options), { untilStopped: true }),
  );
}

async function serve({ connection, connectAgain, output, signal, device }: OpenConnection, options: GatewayOptions): Promise<void> {
  let end = (_error: SvcError | null): void => {};
  const ended = new Promise<SvcError | null>((resolve) => {
    end = resolve;
  });
  const report = reporter(output, device);
  const onState = (state: GatewayState, error: SvcError | null): void => {
    if (state === 'ended') end(error);
    else report(state, error);
  };
  const gateway = await namingPorts({ '--port': options.port }, () =>
    Gateway.open({
      environment: nodeEnvironment(),
      connection,
      connect: connectAgain,
      host: options.listen,
      port: options.port,
      requestTimeout: options.requestTimeout,
      renewsToken: options.jwtFile !== undefined,
      onState,
    }),
  );
  try {
    const { port } = gateway;
    const url = `coap://${formatHostPort({ host: reachableHost(options.listen), port })}`;
    if (!isLoopback(options.listen)) output.warn(`every host that reaches ${url} may use ${device} with the rights of this client`);
    output.result({ event: 'listening', device, host: options.listen, port }, `${url} is ${device}; Ctrl-C ends it`);
    const error = await Promise.race([stopped(signal), ended]);
    if (!signal.aborted) throw new CommandError(`the gateway to ${device} ended: ${describe(error)}`);
  } finally {
    await gateway.close();
  }
}

/** Reports changes of the connection: not the first connect, and not repeated failures with the same error. */
function reporter(output: Output, device: string): (state: GatewayState, error: SvcError | null) => void {
  let reported = 'connected';
  return (state, error) => {
    const now = error === null ? state : `${state} ${error.code}`;
    if (now === reported) return;
    reported = now;
    const text =
      state === 'connected' ? `connected to ${device} again` : `no connection to ${device}: ${error?.message ?? 'it was closed'}`;
    if (output.json) output.result({ event: state, device, ...(error !== null && { error: error.code }) }, text);
    else output.note(text);
  };
}
