/**
 * Layers are law (ARCHITECTURE.md, "The layers"): every import of every source file is read and held against the arrows. Node modules
 * and packages are checked too: the pure layers may import only what is named here.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Layer → layers it may import besides itself. `transport/node` and `transport/browser` are shells around the pure rest of transport. */
const mayImport: Record<string, readonly string[]> = {
  'core-as': [],
  bindings: [],
  protocol: ['bindings'],
  transport: ['bindings', 'protocol'],
  'transport/node': ['bindings', 'protocol', 'transport'],
  'transport/browser': ['bindings', 'protocol', 'transport'],
  device: ['bindings', 'protocol', 'transport', 'transport/node'],
  server: ['bindings', 'protocol', 'transport', 'transport/node'],
  client: ['bindings', 'protocol', 'transport'],
  'client host': ['bindings', 'protocol', 'transport', 'client', 'transport/node', 'transport/browser'],
  cli: ['bindings', 'protocol', 'transport', 'transport/node', 'device', 'client', 'client host', 'server'],
};

/** Layer → packages (and `node:`) it may import. */
const packages: Record<string, RegExp> = {
  'core-as': /^$/,
  bindings: /^(@assemblyscript\/loader|@scure\/base)$/,
  protocol: /^(@noble\/(curves|hashes)|@scure\/base)(\/|$)/,
  'protocol/cbor': /^#cbor-x$/,
  transport: /^(@noble\/(curves|hashes)|@scure\/base)(\/|$)/,
  'transport/node': /^(node:.+|koffi|multicast-dns)$/,
  'transport/browser': /^@noble\/(curves|hashes)(\/|$)/,
  device: /^(node:.+|coap)$/,
  server: /^(node:.+|fastify|jose|kysely|libsql)$/,
  client: /^$/,
  'client host': /^node:.+$/,
  cli: /^(node:.+|commander|cli-progress|jose|qrcode-generator)$/,
};

const folders = ['core-as', 'bindings', 'protocol', 'transport', 'device', 'client', 'server', 'cli'];

describe('layers', () => {
  for (const folder of folders) {
    it(`${folder} imports only what lies to its left`, () => {
      const wrong = sources(folder).flatMap((file) => imports(file).flatMap((specifier) => violation(file, specifier)));
      expect(wrong).toEqual([]);
    });
  }

  it('finds a forbidden import when there is one', () => {
    expect(violation('protocol/noise/x.ts', 'node:crypto')).not.toEqual([]);
    expect(violation('protocol/noise/x.ts', '../../transport/driver.ts')).not.toEqual([]);
    expect(violation('client/stream.ts', '../transport/node/udp.ts')).not.toEqual([]);
    expect(violation('device/attach.ts', '../server/index.ts')).not.toEqual([]);
    expect(violation('protocol/coap/x.ts', 'cbor-x')).not.toEqual([]);
    expect(violation('transport/host/host.ts', '../../protocol/index.ts')).toEqual([]);
  });

  it('has no other top-level code folder', () => {
    const known = new Set([...folders, 'web', 'bench', 'test', 'docs', 'node_modules', 'dist', 'build', 'data', 'coverage']);
    const other = readdirSync(root, { withFileTypes: true }).filter(
      (entry) => entry.isDirectory() && !entry.name.startsWith('.') && !known.has(entry.name),
    );
    expect(other.map((entry) => entry.name)).toEqual([]);
  });
});

describe('purity of protocol, session, simulator and driver', () => {
  const pure = [...sources('protocol'), ...sources('transport').filter((file) => layer(file) === 'transport')];
  const host = /\b(Date|Math\.random|globalThis|performance|setTimeout|setInterval|setImmediate|queueMicrotask|process|Buffer|console)\b/;

  it('names no clock, no randomness and no host', () => {
    const wrong = pure.flatMap((file) =>
      stripped(file)
        .split('\n')
        .flatMap((line, index) =>
          host.test(line.replace(/\.(process|performance)\b/g, '')) ? [`${file}:${index + 1} ${line.trim()}`] : [],
        ),
    );
    expect(wrong).toEqual([]);
  });
});

describe('size of files', () => {
  it('keeps every source file at 500 lines or fewer, unrolled cipher rounds and generated files aside', () => {
    const long = folders
      .flatMap(sources)
      .filter((file) => !file.includes('.generated.') && !/aead\/.*rounds/.test(file))
      .map((file) => ({ file, lines: readFileSync(join(root, file), 'utf8').split('\n').length }))
      .filter(({ lines }) => lines > 500);
    expect(long).toEqual([]);
  });
});

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath ?? entry.path, entry.name)));
}

/** Source without comments and string contents, so that prose may name what code may not. */
function stripped(file: string): string {
  return readFileSync(join(root, file), 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ' '))
    .replace(/(^|[^:'"`])\/\/.*$/gm, '$1')
    .replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, "''")
    .replace(/`(?:[^`\\$]|\\.)*`/g, "''");
}

function imports(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
  const pattern =
    /(?:^|\n)\s*(?:import|export)\b[^'";]*?from\s*['"]([^'"]+)['"]|(?:^|\n)\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g;
  return [...text.matchAll(pattern)].map((match) => (match[1] ?? match[2] ?? match[3]) as string);
}

function layer(file: string): string {
  const [folder = '', second = ''] = file.split('/');
  if (folder === 'transport' && (second === 'node' || second === 'browser')) return `transport/${second}`;
  if (folder === 'client' && /^(node|browser)(\.ts|-)/.test(basename(file))) return 'client host';
  return folder;
}

function violation(file: string, specifier: string): string[] {
  const from = layer(file);
  if (specifier.startsWith('.')) {
    const target = relative(root, join(root, dirname(file), specifier));
    const to = layer(target);
    const allowed = to === from || (mayImport[from] ?? []).includes(to);
    return allowed ? [] : [`${file} → ${target}`];
  }
  const special = file.startsWith('protocol/cbor/') ? packages['protocol/cbor'] : undefined;
  return packages[from]?.test(specifier) || special?.test(specifier) ? [] : [`${file} → ${specifier}`];
}
