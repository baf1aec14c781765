/**
 * The command `svc`: its subcommands, each from a file of its own, put together.
 *
 * Only the subcommand that is asked for is loaded, so that a device does not carry the base station's libraries in its memory; help and
 * mistakes see all of them.
 */
import { Command } from 'commander';
import { VERSION } from '../protocol/records/index.ts';

const SUBCOMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  basestation: async () => (await import('./basestation.ts')).basestationCommand(),
  admin: async () => (await import('./admin/index.ts')).adminCommand(),
  device: async () => (await import('./device.ts')).deviceCommand(),
  devices: async () => (await import('./devices.ts')).devicesCommand(),
  forget: async () => (await import('./devices.ts')).forgetCommand(),
  discover: async () => (await import('./discover.ts')).discoverCommand(),
  doctor: async () => (await import('./doctor.ts')).doctorCommand(),
  connect: async () => (await import('./connect.ts')).connectCommand(),
  pair: async () => (await import('./pair.ts')).pairCommand(),
  iam: async () => (await import('./iam/index.ts')).iamCommand(),
  push: async () => (await import('./push.ts')).pushCommand(),
  coap: async () => (await import('./coap.ts')).coapCommand(),
  stream: async () => (await import('./stream.ts')).streamCommand(),
  tunnel: async () => (await import('./tunnel.ts')).tunnelCommand(),
  gateway: async () => (await import('./gateway.ts')).gatewayCommand(),
  dev: async () => (await import('./dev/index.ts')).devCommand(),
  key: async () => (await import('./key.ts')).keyCommand(),
  ping: async () => (await import('./ping.ts')).pingCommand(),
  status: async () => (await import('./status.ts')).statusCommand(),
};

/** @param argv what will be parsed, without node and script */
export async function svc(argv: readonly string[]): Promise<Command> {
  const program = new Command('svc')
    .description('Reach a device: end-to-end encrypted connections by product id and device id, through a base station or directly.')
    .version(VERSION, '-V, --version');
  const [name = ''] = argv;
  const wanted = Object.hasOwn(SUBCOMMANDS, name) ? [name] : Object.keys(SUBCOMMANDS);
  for (const each of wanted) program.addCommand(await SUBCOMMANDS[each]!());
  return program;
}
