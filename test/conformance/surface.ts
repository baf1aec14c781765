/**
 * Whether a test goes through the public surface that a row speaks of: its file imports an entry point of it for more
 * than its types, itself or through other files of test/.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const CLIENT = ['client/node.ts', 'client/browser.ts'];
const DEVICE = ['device/index.ts'];

/** Entry points by surface, of which a test needs one. */
const ENTRY_POINTS: Readonly<Record<string, readonly string[]>> = {
  android: CLIENT,
  ios: CLIENT,
  'c-client': CLIENT,
  client: CLIENT,
  'c-device': DEVICE,
  device: DEVICE,
  'device-coap': CLIENT,
  records: ['protocol/records/index.ts', ...CLIENT],
  rest: ['server/rest/server.ts'],
};

export class Surfaces {
  readonly #root: string;
  readonly #reached = new Map<string, ReadonlySet<string>>();

  constructor(root: string) {
    this.#root = root;
  }

  /** @param file the test's, relative to the root */
  has(surface: string, file: string): boolean {
    const reached = this.#reached.get(file) ?? this.#from(file);
    this.#reached.set(file, reached);
    return (ENTRY_POINTS[surface] ?? []).some((entry) => reached.has(entry));
  }

  /** All files that a file of test/ imports, those outside of test/ not followed. */
  #from(file: string, found = new Set<string>()): ReadonlySet<string> {
    for (const target of valueImports(join(this.#root, file)).map((specifier) => join(dirname(file), specifier))) {
      if (found.has(target)) continue;
      found.add(target);
      if (target.startsWith('test/')) this.#from(target, found);
    }
    return found;
  }
}

/** The relative specifiers from which a file imports or exports more than types. */
function valueImports(path: string): string[] {
  const text = existsSync(path) ? readFileSync(path, 'utf8').replace(/\/\*[\s\S]*?\*\//g, '') : '';
  const named = [...text.matchAll(/^(?:import|export) (?!type\b)([^;]*?)from '(\.[^']+)'/gm)];
  const values = named.filter(([, names = '']) => !/^{(?:\s*type \w[\w ]*,?)+\s*}\s*$/.test(names));
  return [
    ...values.map(([, , specifier = '']) => specifier),
    ...[...text.matchAll(/\bimport\('(\.[^']+)'\)/g)].map(([, each = '']) => each),
  ];
}
