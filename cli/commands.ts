/**
 * The commands of `svc`, without loading any of them: `svc --help` prints this table, and `main.ts` looks up which
 * bundle holds a command.
 *
 * A new command needs a row here, in the order of the help, and a line in its bundle's file in `bundles/`;
 * test/cli/commands.test.ts compares the two, and the rows with the descriptions of the commands.
 */

/** A file of `bundles/`; the build makes `dist/svc/<name>.cjs` of it. */
export type BundleName = 'station' | 'device' | 'client' | 'dev';

/** A command as the help shows it. */
export interface CommandRow {
  readonly name: string;
  /** Follows the name in the help. */
  readonly usage: string;
  readonly description: string;
  readonly bundle: BundleName;
  /** Set for a command that runs until it is stopped, so its memory matters. */
  readonly stays?: true;
}

export const COMMANDS: readonly CommandRow[] = [
  {
    name: 'basestation',
    usage: '[options]',
    description: 'run a base station: devices attach to it, clients connect through it',
    bundle: 'station',
    stays: true,
  },
  {
    name: 'admin',
    usage: '',
    description: 'manage products, devices, keys, push credentials and services of a base station, also while it runs',
    bundle: 'station',
  },
  {
    name: 'device',
    usage: '[options]',
    description: 'run a device: a thermostat, a file store, TCP and UDP tunnels, its users and state in a directory',
    bundle: 'device',
    stays: true,
  },
  {
    name: 'pair',
    usage: '[options] [device]',
    description: 'verify a device, remember it, and become a user of it in the way it offers',
    bundle: 'client',
  },
  {
    name: 'connect',
    usage: '[options] [device]',
    description: 'verify a device and remember it, as svc pair --no-user does',
    bundle: 'client',
  },
  { name: 'devices', usage: '[options]', description: 'list the devices this client knows, without connecting', bundle: 'client' },
  {
    name: 'forget',
    usage: '[options] [device]',
    description: 'forget a device, or the key of a base station, without connecting; the device keeps its users',
    bundle: 'client',
  },
  {
    name: 'discover',
    usage: '[options]',
    description: 'list the devices on the local network, by mDNS, without connecting',
    bundle: 'client',
  },
  {
    name: 'status',
    usage: '[options] [device]',
    description: 'show what this client is and knows, without connecting; with a device: connect, and show user, path and round trip',
    bundle: 'client',
  },
  { name: 'ping', usage: '[options] [device]', description: 'measure the response time of a device, and show the path', bundle: 'client' },
  {
    name: 'doctor',
    usage: '[options] [device]',
    description: 'explain which path a connection to a device takes, and why it is not direct; with --server alone: check the base station',
    bundle: 'client',
  },
  {
    name: 'coap',
    usage: '[options] <method> <path>',
    description: 'send one CoAP request to a device and print the response',
    bundle: 'client',
  },
  { name: 'stream', usage: '', description: 'send a file to a device or fetch one, over a byte stream', bundle: 'client' },
  {
    name: 'tunnel',
    usage: '[options] [services...]',
    description: 'open local TCP and UDP ports to services of a device; without a service: list them',
    bundle: 'client',
    stays: true,
  },
  {
    name: 'gateway',
    usage: '[options]',
    description: "offer a device's CoAP endpoints on a local UDP port, for any CoAP tool",
    bundle: 'client',
    stays: true,
  },
  { name: 'iam', usage: '', description: 'users, roles and pairing of a device', bundle: 'client' },
  { name: 'push', usage: '', description: 'push notifications of a user', bundle: 'client' },
  { name: 'key', usage: '', description: 'create or show the key of this client', bundle: 'client' },
  { name: 'dev', usage: '', description: 'helpers for development', bundle: 'dev' },
];

/**
 * Returns the row of the command to run or explain: `coap …`, `help coap`. Undefined for options of `svc` itself, its
 * help, and unknown names.
 */
export function commandOf(argv: readonly string[]): CommandRow | undefined {
  const words = argv[0] === '--' ? argv.slice(1) : argv;
  const name = words[0] === 'help' ? words[1] : words[0];
  return COMMANDS.find((row) => row.name === name);
}
