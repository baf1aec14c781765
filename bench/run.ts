/**
 * `npm run bench -- <name> [--json]`: runs one bench and prints a table, or with `--json` exactly one JSON document.
 *
 * Progress goes to standard error, and only to a terminal. Exit codes: 0 done, 1 the bench failed, 2 wrong use, 130 interrupted.
 */
import { document, type Report, table } from './report.ts';

type Progress = (step: string) => void;

interface Entry {
  readonly about: string;
  readonly run: (progress: Progress) => Promise<Report>;
}

const benches: Readonly<Record<string, Entry>> = {
  aead: {
    about: 'ChaCha20-Poly1305 beside node:crypto, @noble/ciphers and @chainsafe/as-chacha20poly1305',
    run: async (progress) => (await import('./aead.ts')).run(progress),
  },
  stream: {
    about: 'a bulk stream client → device, direct and through the base station, beside bare datagrams',
    run: async (progress) => (await import('./stream.ts')).run(progress),
  },
  coap: {
    about: 'round trips of a CoAP request beside client and server of the coap package',
    run: async (progress) => (await import('./coap.ts')).run(progress),
  },
  memory: {
    about: 'memory of an idle connection and of an idle attached device',
    run: async (progress) => (await import('./memory.ts')).run(progress),
  },
};

const USAGE = `Usage: npm run bench -- <name> [--json]

${Object.entries(benches)
  .map(([name, { about }]) => `  ${name.padEnd(8)} ${about}`)
  .join('\n')}

  --json   print one JSON document instead of a table
  --help   print this
`;

// An interrupted bench leaves nothing behind: child processes end with this one, directories are removed at its exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(USAGE);
    return;
  }
  const names = args.filter((argument) => !argument.startsWith('-'));
  const unknown = args.find((argument) => argument.startsWith('-') && argument !== '--json');
  const [name] = names;
  if (unknown !== undefined) return misuse(`unknown option ${unknown}`);
  if (name === undefined || names.length > 1) return misuse('name one bench');
  const entry = Object.hasOwn(benches, name) ? benches[name] : undefined;
  if (!entry) return misuse(`unknown bench "${name}"`);
  try {
    const report = await entry.run(progress(name));
    process.stdout.write(`${args.includes('--json') ? document(report) : table(report)}\n`);
  } catch (error) {
    process.stderr.write(`bench ${name}: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}

function misuse(what: string): void {
  process.stderr.write(`bench: ${what}; there are ${Object.keys(benches).join(', ')} (npm run bench -- --help)\n`);
  process.exitCode = 2;
}

function progress(name: string): Progress {
  if (!process.stderr.isTTY) return () => {};
  return (step) => process.stderr.write(`\r\u001b[K${name}: ${step} …\r`);
}
