/**
 * The core has module state of three kinds, and no other (core-as/index.ts):
 *
 *   second return values   `out…`: set by a function, read by its caller at once
 *   scratch of a call      shared by the parts of one call of the module, listed here; a later call never reads it
 *   state of the module    memory, free lists and counts, listed here
 *
 * The names are checked in the source. To show that no later call reads scratch, a test overwrites all of it between
 * calls.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { Core } from '../../bindings/index.ts';
import { Flow } from '../bindings/flow.ts';
import { Line } from '../bindings/pair.ts';
import { DEVICE, RoutedPair, rebound } from '../bindings/routed-pair.ts';

const folder = fileURLToPath(new URL('../../core-as', import.meta.url));

/** File → why its variables outlive a call. */
const STATE: Record<string, string> = {
  'abort.ts': 'address of a trap in the module, for the caller to read',
  'memory/layout.ts': 'memory layout, written once',
  'memory/chunks.ts': 'free chunks',
  'memory/packet-slots.ts': 'free packet slots',
  'records/slab.ts': 'free connection slots and their count',
  'streams/table.ts': 'free stream records and their counts',
  'streams/window.ts': 'total growth of all windows',
  'paths/challenge-data.ts': 'counter of the generator of challenges',
  'connection/open.ts': 'handle of the connection opened last, which the caller reads next',
};

/** File → what its variables describe during one call of the module. */
const SCRATCH: Record<string, string> = {
  'frames/varint.ts': 'the reader of the received packet',
  'packet/protection.ts': 'the received packet: number, id, meaning of its key phase',
  'paths/arrival.ts': 'the received packet: its path',
  'connection/frames.ts': 'the received packet: kinds of its frames',
  'packet/staging.ts': 'the packet that is built',
  'connection/emit.ts': 'the packets that are written',
  'congestion/bbr/rate-sample.ts': 'the sample of the received ACK (draft-ietf-ccwg-bbr §4.1.2: RS)',
  'memory/range-set.ts': 'the position found in a range set',
  'hash/sha256.ts': 'the message that is hashed',
};

const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('testing.ts'))
  .map((entry) => {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    return { file: relative(folder, path), source: readFileSync(path, 'utf8') };
  });

/** Module-level variables of a source. */
function variables(source: string): string[] {
  return [...source.matchAll(/^(?:export )?let (\w+)/gm)].map(([, name]) => name as string);
}

/**
 * Second return values that a source reads in a function without an earlier call, in the same function, of a function
 * from the file that sets them.
 */
function readTooLate(source: string): string[] {
  const imports = [...source.matchAll(/^import \{([^}]*)\} from '[^']+';/gm)].map(([, names]) =>
    names!.split(',').map((name) => name.trim()),
  );
  const functions = source.split(/^(?=(?:export )?function )/m).slice(1);
  return imports.flatMap((names) => {
    const calls = names.filter((name) => /^[a-z]/.test(name) && !isOut(name)).map((name) => name.split(' as ').at(-1));
    const called = new RegExp(`\\b(?:${calls.join('|') || '(?!)'})\\(`);
    return names.filter(isOut).flatMap((name) =>
      functions
        .filter((body) => body.includes(name))
        .filter((body) => !called.test(body.slice(0, body.search(`\\b${name}\\b`))))
        .map((body) => `${name} in ${body.slice(0, body.indexOf('('))}`),
    );
  });
}

function isOut(name: string): boolean {
  return /^out[A-Z]/.test(name);
}

describe('variables of the module', () => {
  test.each(files.filter(({ source }) => variables(source).length > 0))('$file has only those of a known kind', ({ file, source }) => {
    expect(variables(source).filter((name) => !isOut(name) && !(file in STATE) && !(file in SCRATCH))).toEqual([]);
  });

  test('the lists name no file without variables', () => {
    const known = new Set(files.filter(({ source }) => variables(source).length > 0).map(({ file }) => file));
    expect([...Object.keys(STATE), ...Object.keys(SCRATCH)].filter((file) => !known.has(file))).toEqual([]);
  });

  test('second return values are read right after the call', () => {
    expect(files.flatMap(({ file, source }) => readTooLate(source).map((late) => `${file}: ${late}`))).toEqual([]);
    const late = "import { outStart, seek } from './range-set';\nfunction a(): void {\n  use(outStart);\n  seek(1);\n}\n";
    expect(readTooLate(late)).toHaveLength(1);
    expect(readTooLate(late.replace('use(outStart);\n  seek(1)', 'seek(1);\n  use(outStart)'))).toEqual([]);
  });
});

describe('no later call reads it:', () => {
  let module: WebAssembly.Module;
  beforeAll(() => {
    module = new WebAssembly.Module(readFileSync(new URL('../../build/core.test.wasm', import.meta.url)));
  });

  /** A core whose scratch is overwritten before each call of the module, and the number of times it was. */
  async function spoiled(): Promise<{ core: Core; calls: () => number }> {
    const core = await Core.load({}, module);
    const internals = (core as unknown as { internals: { exports: WebAssembly.Exports } }).internals;
    const original = internals.exports;
    const scratch = scratchGlobals(original);
    expect(scratch.length).toBeGreaterThan(20);
    let calls = 0;
    internals.exports = Object.fromEntries(
      Object.entries(original).map(([name, value]) => {
        if (typeof value !== 'function') return [name, value];
        const spoil = (...values: unknown[]) => {
          calls++;
          for (const { global, garbage } of scratch) global.value = garbage;
          return value(...values);
        };
        return [name, spoil];
      }),
    );
    return { core, calls: () => calls };
  }

  function scratchGlobals(exports: WebAssembly.Exports) {
    const names = files.filter(({ file }) => !(file in STATE)).flatMap(({ source }) => variables(source));
    return names.flatMap((name) => {
      const global = exports[name];
      if (!(global instanceof WebAssembly.Global)) return [];
      return [{ global, garbage: typeof global.value === 'bigint' ? 0x5a5a_5a5a_5a5an : 0x5a5a_5a5a }];
    });
  }

  test('a lossy transfer with BBR sends the same packets', { tags: ['slow'] }, async () => {
    const transfer = (core: Core) => {
      const flow = new Flow({ core, seed: 3, congestion: 'bbr', line: new Line(20_000_000, 64_000), rtt: 30, loss: 0.01 });
      flow.pair.initiator.record = true;
      flow.pair.run(2_000);
      expect(flow.received).toBeGreaterThan(2_000_000);
      return digest(flow.pair.initiator.sent);
    };
    const { core, calls } = await spoiled();
    expect(transfer(core)).toBe(transfer(await Core.load({}, module)));
    expect(calls()).toBeGreaterThan(2_000);
  });

  test('a NAT rebinding and a migration lead to the same packets', { tags: ['slow'] }, async () => {
    const move = (core: Core) => {
      const pair = new RoutedPair({ core });
      const index = pair.initiator.add({ ours: 'client:2', theirs: DEVICE }, pair.now);
      pair.run(500);
      rebound(pair, 'nat:9');
      pair.initiator.connection.ping();
      pair.run(3_000);
      pair.network = (datagram) => datagram;
      pair.initiator.connection.paths.migrate(index, pair.now);
      pair.run(3_000);
      expect(pair.initiator.active).toBe(index);
      expect(pair.responder.names().length).toBeGreaterThan(1);
      return digest([...pair.initiator.sent, ...pair.responder.sent].map(({ bytes }) => bytes));
    };
    expect(move((await spoiled()).core)).toBe(move(await Core.load({}, module)));
  });
});

function digest(packets: Uint8Array[]): string {
  const hash = createHash('sha256');
  for (const packet of packets) hash.update(packet);
  return `${packets.length} ${hash.digest('hex')}`;
}
