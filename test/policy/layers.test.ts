/**
 * Enforces ARCHITECTURE.md, "The layers" and "Inside the folders": every import of every source file must follow the
 * arrows, between the top folders and inside them. Node modules and packages are checked, too: the pure layers may
 * import only those named here.
 */
import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { breaches, circles, foldersInOrder } from './folder-order.ts';
import { type ImportGraph, importGraph, imports, root, sources, stripped, targetOf, textOf } from './imports.ts';

/**
 * Layer → layers that it may import besides itself. `platform` itself is what a platform must provide; `platform/node`
 * and `platform/browser` provide it.
 */
const mayImport: Record<string, readonly string[]> = {
  'core-as': [],
  bindings: [],
  protocol: ['bindings'],
  platform: ['bindings', 'protocol'],
  'platform/node': ['bindings', 'protocol', 'platform'],
  'platform/browser': ['bindings', 'protocol', 'platform'],
  runtime: ['bindings', 'protocol', 'platform'],
  testing: ['bindings', 'protocol', 'platform', 'runtime'],
  device: ['bindings', 'protocol', 'platform', 'platform/node', 'runtime'],
  server: ['bindings', 'protocol', 'platform', 'platform/node', 'runtime'],
  client: ['bindings', 'protocol', 'platform', 'runtime'],
  'client host': ['bindings', 'protocol', 'platform', 'platform/node', 'platform/browser', 'runtime', 'client'],
  cli: ['bindings', 'protocol', 'platform', 'platform/node', 'runtime', 'device', 'client', 'client host', 'server'],
};

/** Layer → packages (and `node:`) that it may import. */
const packages: Record<string, RegExp> = {
  'core-as': /^$/,
  bindings: /^@scure\/base$/,
  protocol: /^(@noble\/(curves|hashes)|@scure\/base)(\/|$)/,
  platform: /^@noble\/(curves|hashes)(\/|$)/,
  'platform/node': /^(node:.+|koffi|multicast-dns|proxy-from-env|ws)$/,
  'platform/browser': /^@noble\/(curves|hashes)(\/|$)/,
  runtime: /^@scure\/base(\/|$)/,
  testing: /^@noble\/hashes(\/|$)/,
  device: /^(node:.+|coap)$/,
  server: /^(node:.+|fastify|jose|kysely|libsql|ws)$/,
  client: /^$/,
  'client host': /^node:.+$/,
  cli: /^(node:.+|commander|cli-progress|jose|qrcode-generator)$/,
};

const folders = ['core-as', 'bindings', 'protocol', 'platform', 'runtime', 'testing', 'device', 'client', 'server', 'cli'];

/** Top folders with an inner order: one line each in ARCHITECTURE.md. */
const ordered = ['core-as', 'protocol', 'platform', 'runtime', 'testing', 'device', 'client', 'server'];
/** Top folders with too few files for an inner order. */
const unordered = ['bindings', 'cli'];

/** Accepted circles of files, each with its reason. */
const knownCircles: Readonly<Record<string, string>> = {};

describe('layers', () => {
  for (const folder of folders) {
    it(`${folder} imports only what lies to its left`, () => {
      const wrong = sources(folder).flatMap((file) => imports(file).flatMap((specifier) => violation(file, specifier)));
      expect(wrong).toEqual([]);
    });
  }

  it('finds a forbidden import', () => {
    expect(violation('protocol/noise/x.ts', 'node:crypto')).not.toEqual([]);
    expect(violation('protocol/noise/x.ts', '../../runtime/driver.ts')).not.toEqual([]);
    expect(violation('client/coap.ts', '../platform/node/udp.ts')).not.toEqual([]);
    expect(violation('device/attach.ts', '../server/index.ts')).not.toEqual([]);
    expect(violation('protocol/coap/x.ts', 'cbor-x')).not.toEqual([]);
    expect(violation('runtime/host/host.ts', '../../protocol/index.ts')).toEqual([]);
  });

  it('has no other top-level code folder', () => {
    const known = new Set([...folders, 'web', 'bench', 'test', 'docs', 'node_modules', 'dist', 'build', 'data', 'coverage']);
    const other = readdirSync(root, { withFileTypes: true }).filter(
      (entry) => entry.isDirectory() && !entry.name.startsWith('.') && !known.has(entry.name),
    );
    expect(other.map((entry) => entry.name)).toEqual([]);
  });
});

describe('inside the folders', () => {
  const orders = foldersInOrder(textOf('ARCHITECTURE.md'));

  it('ARCHITECTURE.md gives the order of each', () => {
    expect([...orders.keys()].sort()).toEqual([...ordered].sort());
  });

  for (const folder of ordered) {
    it(`${folder}/ imports only lower ranks`, () => {
      expect(breaches(folder, orders.get(folder) ?? [], importGraph(folder))).toEqual([]);
    });
  }

  it('files import one another in a circle only where a reason is listed', { tags: ['slow'] }, () => {
    const found = [...ordered, ...unordered].flatMap((folder) => circles(importGraph(folder)));
    expect(found.sort()).toEqual(Object.keys(knownCircles).sort());
  });
});

describe('the order inside a folder', () => {
  const document = 'Text.\n\n- `protocol/`: errors, path.ts → coap → endpoint → index.ts\n- `device/`: no order.\n';
  const order = foldersInOrder(document).get('protocol') ?? [];
  const graph: ImportGraph = new Map([
    ['protocol/path.ts', []],
    ['protocol/errors/codes.ts', []],
    ['protocol/errors/index.ts', ['protocol/errors/codes.ts']],
    ['protocol/coap/message.ts', ['protocol/errors/index.ts']],
    ['protocol/coap/codes.ts', ['protocol/coap/message.ts']],
    ['protocol/endpoint/dial.ts', ['protocol/path.ts', 'protocol/coap/codes.ts']],
    ['protocol/index.ts', ['protocol/endpoint/dial.ts']],
  ]);
  const plus = (file: string, ...targets: string[]): ImportGraph => new Map([...graph, [file, [...(graph.get(file) ?? []), ...targets]]]);

  it('is read from a line of the document', () => {
    expect([...foldersInOrder(document)]).toEqual([['protocol', [['errors', 'path.ts'], ['coap'], ['endpoint'], ['index.ts']]]]);
    expect(() => foldersInOrder(document + document)).toThrow('protocol/ has two orders');
  });

  it('allows imports that lead downwards or stay in an entry', () => {
    expect(breaches('protocol', order, graph)).toEqual([]);
  });

  it('finds an import that leads upwards, or sideways within a rank', () => {
    const upward = plus('protocol/coap/message.ts', 'protocol/endpoint/dial.ts');
    expect(breaches('protocol', order, upward)).toEqual(['protocol/coap/message.ts → protocol/endpoint/dial.ts']);
    const aside = plus('protocol/errors/codes.ts', 'protocol/path.ts');
    expect(breaches('protocol', order, aside)).toEqual(['protocol/errors/codes.ts → protocol/path.ts']);
  });

  it('finds an entry that is not named, and one that does not exist', () => {
    expect(breaches('protocol', order, plus('protocol/cbor/index.ts'))).toEqual(['protocol/cbor is not named']);
    expect(breaches('protocol', [['cbor'], ...order], graph)).toEqual(['protocol/cbor does not exist']);
    expect(breaches('protocol', [...order, ['errors']], graph)).toContain('protocol/errors is named twice');
  });

  it('finds an import of an entry that is not named', () => {
    const stray = new Map([...plus('protocol/endpoint/dial.ts', 'protocol/cbor/index.ts'), ['protocol/cbor/index.ts', []]]);
    expect(breaches('protocol', order, stray)).toContain('protocol/endpoint/dial.ts → protocol/cbor/index.ts');
  });

  it('finds circles of files, also of a single file, and indirect ones', () => {
    expect(circles(graph)).toEqual([]);
    expect(circles(plus('protocol/path.ts', 'protocol/path.ts'))).toEqual(['protocol/path.ts']);
    expect(circles(plus('protocol/errors/codes.ts', 'protocol/coap/codes.ts'))).toEqual([
      'protocol/coap/codes.ts ↔ protocol/coap/message.ts ↔ protocol/errors/codes.ts ↔ protocol/errors/index.ts',
    ]);
  });

  it('finds a circle in the real tree when one import is added', () => {
    const real = importGraph('protocol');
    const [low, high] = ['protocol/path.ts', 'protocol/endpoint/endpoint.ts'];
    const changed = new Map([...real, [low, [...real.get(low)!, high]]]);
    expect(breaches('protocol', foldersInOrder(textOf('ARCHITECTURE.md')).get('protocol')!, changed)).toEqual([`${low} → ${high}`]);
    expect(circles(changed)).toHaveLength(1);
  });
});

describe('protocol, platform, runtime and simulator', () => {
  const pure = ['protocol', 'platform', 'runtime', 'testing'].flatMap((folder) => sources(folder).filter((file) => layer(file) === folder));
  const host = /\b(Date|Math\.random|globalThis|performance|setTimeout|setInterval|setImmediate|queueMicrotask|process|Buffer|console)\b/;

  it('use no clock, no randomness and no platform global', () => {
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

/** Files of products whose public API will be built again. */
const notRebuilt: ReadonlySet<string> = new Set(['client/connection.ts', 'device/iam/iam.ts']);

describe('source files', () => {
  it('have 350 lines at most, generated files and two that will be built again aside', () => {
    const long = folders
      .flatMap(sources)
      .filter((file) => !file.includes('.generated.'))
      .map((file) => ({ file, lines: textOf(file).split('\n').length - 1 }))
      .filter(({ file, lines }) => lines > (notRebuilt.has(file) ? 500 : 350));
    expect(long).toEqual([]);
  });
});

function layer(file: string): string {
  const [folder = '', second = ''] = file.split('/');
  if (folder === 'platform' && (second === 'node' || second === 'browser')) return `platform/${second}`;
  if (folder === 'client' && /^(node|browser)(\.ts|-)/.test(basename(file))) return 'client host';
  return folder;
}

function violation(file: string, specifier: string): string[] {
  const from = layer(file);
  const target = targetOf(file, specifier);
  if (target !== null) {
    const to = layer(target);
    const allowed = to === from || (mayImport[from] ?? []).includes(to);
    return allowed ? [] : [`${file} → ${target}`];
  }
  return packages[from]?.test(specifier) ? [] : [`${file} → ${specifier}`];
}
