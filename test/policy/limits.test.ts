/** docs/limits.md has every limit, as the code has it, and PROTOCOL.md §9 and core-as say the same. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MESSAGE_LIMIT } from '../../bindings/index.ts';
import { groups, limitsDocument, limitsOf, rooms, row } from '../limits/document.ts';
import { imports, root, sources, stripped, targetOf, textOf } from './imports.ts';

const limits = groups.flatMap(limitsOf);
const FOLDERS = ['bindings', 'protocol', 'platform', 'runtime', 'device', 'client', 'server', 'cli'];

/** Rows of PROTOCOL.md §9 that limit nothing which another party can use up, or only on its own connection. */
const NO_LIMITS: readonly string[] = [
  'credit for streams that move, for those whose limit has risen; what such a stream may use of it',
  'active_connection_id_limit',
  'paths of a connection',
  'replay window, at least',
  'ACK ranges in a frame',
  'packet size at first, BASE_PLPMTU',
  'maximum ACK delay by default (`MaxAckDelay` is always announced)',
  'packet threshold, time threshold, granularity',
  'initial RTT',
  'packets, time under one key',
  'Retry token',
  'delay of the ACK of Complete',
  'CoAP exchange',
  'keep-alive by default',
  'idle timeout by default',
  'candidates of an endpoint',
  'hop limits of openers',
  'predicted ports of a round',
  'longest PTO with back-off',
  'content of a DATAGRAM frame that always fits',
];

/** Constant that bounds a table without being a limit → why it is none. */
const NO_TABLES: Readonly<Record<string, string>> = {
  'cli/dev/push-emulator.ts KEPT': 'a tool of developers on loopback',
  'device/audit/store.ts LARGEST_SEGMENT': 'the size of a file, which only the owner writes',
  'device/mdns.ts MAX_SUBTYPES': 'only the application fills it',
  'protocol/coap/requester.ts MAX_ENDED': 'of one connection, about our own requests',
  'protocol/rendezvous/checklist.ts MAX_PAIRS': 'as many as the budget of a round has',
  'protocol/rendezvous/checklist.ts MAX_TRANSACTIONS': 'of one round, our own checks',
  'protocol/station-dial/blocked-networks.ts MAX_NETWORKS': 'networks that this host itself is in',
  'runtime/rendezvous/gatherer.ts MAX_KNOWN': 'stations that this host itself uses',
  'runtime/roaming/roaming.ts MAX_DESTINATIONS': 'parties that this host itself reached',
  'runtime/roaming/roaming.ts MAX_REPLACED': 'sockets that this host itself opened',
};

/** Row of PROTOCOL.md §9 → its numbers. */
const constants: ReadonlyMap<string, readonly string[]> = new Map(
  (/\n## 9\. Constants\n([\s\S]*?)\n## /.exec(textOf('PROTOCOL.md'))?.[1] ?? '')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(1)
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([, name, value]) => [name!, numbersOf(value!)]),
);

/** The numbers of a text with what they count: `30000 ms`, `66560 bytes`, `64`. */
function numbersOf(text: string): string[] {
  const units: Readonly<Record<string, readonly [factor: number, unit: string]>> = {
    ms: [1, ' ms'],
    s: [1000, ' ms'],
    min: [60_000, ' ms'],
    bytes: [1, ' bytes'],
    KiB: [1024, ' bytes'],
    R: [MESSAGE_LIMIT, ' bytes'],
  };
  return [...text.matchAll(/(\d[\d,]*)(?: (ms|s|min|bytes|KiB|R)\b)?/g)].map(([, digits, word]) => {
    const [factor, unit] = units[word ?? ''] ?? [1, ''];
    return `${Number(digits!.replaceAll(',', '')) * factor}${unit}`;
  });
}

/** Constant of core-as with a number → its files and values: there are names in several files. */
const ofCore = sources('core-as').flatMap((file) =>
  [...textOf(file).matchAll(/^(?:export )?const ([A-Z_0-9]+)(?:: \w+)? = ([\d_]+);/gm)].map(([, name, digits]) => ({
    name: name!,
    value: Number(digits!.replaceAll('_', '')),
  })),
);

describe('docs/limits.md', () => {
  it('is what `npm run limits` writes', () => {
    expect(textOf('docs/limits.md')).toBe(limitsDocument());
  });

  it('has the limits of every limits.ts', () => {
    const files = FOLDERS.flatMap(sources).filter((file) => file.endsWith('limits.ts'));
    const exporting = files.filter((file) => new RegExp(`^export const (?:${groups.join('|')})\\b`, 'm').test(textOf(file)));
    expect(Object.keys(rooms).sort()).toEqual(exporting.sort());
    expect(
      Object.values(rooms)
        .flatMap(Object.keys)
        .filter((name) => !groups.some((group) => group === name)),
    ).toEqual([]);
  });

  it('has texts that no other file of the product imports', () => {
    const imported = FOLDERS.flatMap(sources).flatMap((file) => imports(file).map((path) => targetOf(file, path) ?? ''));
    expect(imported.filter((path) => path in rooms)).toEqual([]);
  });

  it.each(groups)('names each limit once: %s', (group) => {
    const names = limitsOf(group).map(({ name }) => name);
    expect(names.length).toBeGreaterThan(5);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  it('has every cell, without a bar', () => {
    const cells = limits.flatMap(({ name, filledBy, next, freedWhen }) => [name, filledBy, next, freedWhen]);
    expect(cells.filter((cell) => cell === '' || cell.includes('|'))).toEqual([]);
  });

  it('has every constant that the size of a table is compared with', () => {
    const listed = Object.keys(rooms).flatMap((room) =>
      [...textOf(room).matchAll(/import \{([^}]*)\} from '([^']+)'/g)].flatMap(([, names, from]) =>
        names!.split(',').map((name) => `${targetOf(room, from!)} ${name.trim().split(' ')[0]}`),
      ),
    );
    const compared = FOLDERS.flatMap(sources).flatMap((file) =>
      [...stripped(file).matchAll(/\.size (?:>=?|===|<=?) ([A-Z][A-Z_]+)\b(?!\.)/g)].map(([, name]) => `${file} ${name}`),
    );
    const found = compared.filter((constant) => !listed.includes(constant));
    expect(compared.length).toBeGreaterThan(2 * found.length);
    expect([...new Set(found)].sort()).toEqual(Object.keys(NO_TABLES));
  });

  it('names tests that exist', () => {
    const exists = (path: string): boolean => /^test\/.+\.test\.ts$/.test(path) && existsSync(join(root, path));
    expect(limits.filter((limit) => limit.tests.length === 0 || !limit.tests.every(exists))).toEqual([]);
  });
});

describe('the numbers of limits', () => {
  it('are those of PROTOCOL.md §9', () => {
    const named = limits.flatMap(({ rows }) => rows);
    const compared = [...constants].filter(([name]) => !NO_LIMITS.includes(name));
    const missing = compared.map(([name, numbers]) => {
      const said = limits.filter(({ rows }) => rows.includes(name)).flatMap((limit) => numbersOf(row(limit)));
      return { name, numbers: numbers.filter((number) => !said.includes(number)) };
    });
    expect(missing.filter(({ numbers }) => numbers.length > 0)).toEqual([]);
    expect([...new Set(named)].sort()).toEqual(compared.map(([name]) => name).sort());
    expect(NO_LIMITS.filter((name) => !constants.has(name))).toEqual([]);
  });

  it('are those of the constants of core-as', () => {
    const wrong = limits.flatMap((limit) =>
      (limit.core ?? []).filter((name) => {
        const same = ofCore.filter((constant) => constant.name === name);
        return same.length !== 1 || !limit.values.includes(same[0]!.value);
      }),
    );
    expect(wrong).toEqual([]);
    expect(limits.flatMap(({ core }) => core ?? []).length).toBeGreaterThan(0);
  });
});
