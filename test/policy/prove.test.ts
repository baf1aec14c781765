/**
 * The parts of `npm run conformance -- --prove`: what is replaced, by what, and that a claim without substance stays
 * unproved.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import type { CacheKeyIdGenerator, CacheKeyIdGeneratorContext } from 'vitest/node';
import type { Row } from '../conformance/check.ts';
import { changeConstant, loseMember, silenced, unregistered, withoutEvent } from '../conformance/prove/members.ts';
import { openModules } from '../conformance/prove/plugin.ts';
import { verdict } from '../conformance/prove/prove.ts';
import { type Declarations, effectCount, openModule, type Proof, recordedCalls, startTest } from '../conformance/prove/replace.ts';
import { type Replacement, replacementOf } from '../conformance/prove/replacement.ts';
import { exactly, namesOf, type TestResult } from '../conformance/prove/runner.ts';
import { select } from '../conformance/prove/selection.ts';
import { type Place, placeOf } from '../conformance/prove/sources.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const FILE = 'some.ts';

/** A fresh module, as plugin.ts opens it. */
function module() {
  class Base {
    inherited(): string {
      return 'inherited';
    }
  }
  class Thing extends Base {
    readonly field: string;
    constructor(field = 'field') {
      super();
      this.field = field;
    }
    static make(): Thing {
      return new Thing('made');
    }
    get accessor(): string {
      return 'accessor';
    }
    check(value: number): number {
      if (value < 0) throw new Error('negative');
      return value;
    }
    async later(value: number): Promise<number> {
      return this.check(value);
    }
  }
  let plain = (): string => 'plain';
  let own = Thing;
  const constants = { ONE: 1 };
  const declarations: Declarations = {
    Base: { get: () => Base, set: () => {} },
    Thing: { get: () => own, set: (value) => (own = value as typeof Thing) },
    constants: { get: () => constants },
    plain: { get: () => plain, set: (value) => (plain = value as typeof plain) },
  };
  return { declarations, make: (...given: string[]) => new own(...given), static: () => own.make(), plain: () => plain() };
}

const proof: Proof = { recorded: [], replacement: null, calls: {}, testTimeout: 1_000 };
const place = (name: string, member?: string) => ({ file: FILE, name, isValue: true, ...(member !== undefined && { member }) });

/** The module with a replacement. */
function replaced(replacement: Replacement, calls: Proof['calls'] = {}) {
  const opened = module();
  openModule({ ...proof, replacement, calls }, FILE, opened.declarations);
  return opened;
}

/** The module without a symbol, of which no call is known to have thrown. */
function without(name: string, member?: string, calls: Proof['calls'] = {}) {
  return replaced({ kind: 'call', places: [place(name, member)] }, calls);
}

describe('a replaced operation does nothing', () => {
  test.each([
    ['a method', () => without('Thing', 'check').make().check(1), undefined],
    ['an inherited method', () => without('Thing', 'inherited').make().inherited(), undefined],
    ['an accessor', () => without('Thing', 'accessor').make().accessor, undefined],
    ['a field', () => without('Thing', 'field').make('x').field, undefined],
    ['a static method', () => without('Thing', 'make').static(), undefined],
    ['a function', () => without('plain').plain(), undefined],
    ['a constructor', () => ({ ...without('Thing').make('x') }), {}],
    ['others stay', () => without('Thing', 'check').make().accessor, 'accessor'],
  ])('%s', (_, run, result) => {
    expect(run()).toEqual(result);
  });

  test('but throws in the calls that threw when they were recorded, per test and in order', () => {
    const calls = { one: { 'some.ts:Thing.check': 'rt' }, other: { 'some.ts:Thing.check': 't' } };
    const thing = without('Thing', 'check', calls).make();
    startTest('one');
    expect(thing.check(-1)).toBeUndefined();
    expect(() => thing.check(-1)).toThrow('negative');
    expect(thing.check(-1)).toBeUndefined();
    startTest('other');
    expect(() => thing.check(-1)).toThrow('negative');
  });

  test('but returns a promise where the original did', async () => {
    const thing = without('Thing', 'later', { one: { 'some.ts:Thing.later': 'R' } }).make();
    startTest('one');
    const later = thing.later(1);
    expect(later).toBeInstanceOf(Promise);
    expect(await later).toBeUndefined();
  });
});

test('the recording holds the outcome of each call', async () => {
  const { declarations, make } = module();
  openModule({ ...proof, recorded: [place('Thing', 'check'), place('Thing', 'later')] }, FILE, declarations);
  startTest('recorded');
  const thing = make();
  thing.check(1);
  expect(() => thing.check(-1)).toThrow();
  await Promise.allSettled([thing.later(1), thing.later(-1)]);
  expect(recordedCalls('recorded')).toEqual({ 'some.ts:Thing.check': 'rtrt', 'some.ts:Thing.later': 'RT' });
});

describe('what passes through an operation', () => {
  test('a member is lost in objects, lists, JSON, arguments of callbacks and their results', () => {
    const note = vi.fn<() => void>();
    const without = (value: unknown, ...path: string[]) => loseMember(value, path, note);
    expect(without({ a: 1, b: 2 }, 'a')).toEqual({ b: 2 });
    expect(without([{ a: 1 }, { b: 2 }], 'a')).toEqual([{}, { b: 2 }]);
    expect(without({ list: [{ ip: 1, name: 2 }] }, 'list', 'ip')).toEqual({ list: [{ name: 2 }] });
    expect(without('{"a":1}', 'a')).toBe('{}');
    const handler = without((given: object) => ({ ...given, a: 2, c: 3 }), 'a') as (given: object) => object;
    expect(note).toHaveBeenCalledTimes(4);
    expect(handler({ a: 1, b: 2 })).toEqual({ b: 2, c: 3 });
    expect(note).toHaveBeenCalledTimes(6);
    expect(without({ b: 1 }, 'a')).toEqual({ b: 1 });
    expect(without({ list: [{ name: 2 }] }, 'list', 'ip')).toEqual({ list: [{ name: 2 }] });
    expect(note).toHaveBeenCalledTimes(6);
  });

  test('an event reaches neither a function nor onEvent, while others do', () => {
    const heard: string[] = [];
    const note = vi.fn<() => void>();
    const hear = silenced((_: number, event: string) => heard.push(event), 'OPENED', note) as (ref: number, event: string) => void;
    const callback = silenced({ onEvent: (event: string) => heard.push(event) }, 'OPENED', note) as { onEvent(event: string): void };
    for (const event of ['OPENED', 'CLOSED']) {
      hear(1, event);
      callback.onEvent(event);
    }
    const [, named] = withoutEvent(['OPENED', () => heard.push('named')], 'OPENED', note) as [string, () => void];
    const [, other] = withoutEvent(['CLOSED', () => heard.push('other')], 'OPENED', note) as [string, () => void];
    for (const each of [named, other]) each();
    expect(heard).toEqual(['CLOSED', 'CLOSED', 'other']);
    expect(note).toHaveBeenCalledTimes(3);
  });

  test('an endpoint is not registered, whether alone or among others', () => {
    const added: string[] = [];
    const note = vi.fn<() => void>();
    const add = (method: string, path: string) =>
      unregistered(() => added.push(`${method} ${path}`), [method, path], 'PUT /users/{name}/*', note);
    add('PUT', '/users/{name}/role');
    add('GET', '/users/{name}/role');
    add('PUT', '/users/{name}');
    const application = { get: (path: string) => added.push(`get ${path}`) };
    const routes = () => ['/health', '/v1/keys'].map((path) => application.get(path));
    unregistered(routes, [application], 'GET /v1/keys', note);
    expect(added).toEqual(['GET /users/{name}/role', 'PUT /users/{name}', 'get /health']);
    expect(note).toHaveBeenCalledTimes(2);
  });

  test('a constant has another value', () => {
    const format = { TEXT: 0, CBOR: 60 };
    changeConstant(format, 'CBOR');
    expect(format).toEqual({ TEXT: 0, CBOR: 10_060 });
  });
});

describe('the effects of a replacement are counted', () => {
  const effectsOf = (run: () => void) => {
    const before = effectCount();
    run();
    return effectCount() - before;
  };

  test.each<[string, number, () => void]>([
    ['a call that does nothing', 1, () => without('Thing', 'check').make().check(1)],
    ['not one that stays', 0, () => without('Thing', 'check').make().accessor],
    ['a constant', 1, () => replaced({ kind: 'constant', places: [place('constants')] })],
    [
      'not a member that nothing has',
      0,
      () =>
        replaced({ kind: 'member', places: [place('Thing', 'check')], path: ['x'] })
          .make()
          .check(1),
    ],
    ['not what another module declares', 0, () => replaced({ kind: 'constant', places: [{ ...place('constants'), file: 'other.ts' }] })],
  ])('%s: %i', (_, count, run) => {
    expect(effectsOf(run)).toBe(count);
  });

  test('a claim whose replacement had none is not proved, even if its test failed', async () => {
    const row = { kind: 'constant', symbol: 'device:ContentFormat', where: [], path: '' } as unknown as Row;
    const replacement = { kind: 'constant', places: [place('constants')] } as const;
    const claim = { key: '', names: [], file: FILE, title: 'works', row, replacement };
    const result: TestResult = { id: '1', name: 'works', failure: null, isOwnFault: false, duration: 1, calls: {}, effects: 0 };
    const withRun = (change: Partial<TestResult>) => verdict({ run: async () => [{ ...result, ...change }] }, claim, [result]);
    expect(await withRun({ failure: 'late' })).toEqual({ obstacle: expect.stringContaining('changes nothing') });
    expect(await withRun({})).toEqual({ obstacle: expect.stringContaining('changes nothing') });
    expect(await withRun({ effects: 1 })).toEqual({ obstacle: 'the test passes with it replaced' });
    expect(await withRun({ effects: 1, failure: 'wrong' })).toEqual({ obstacle: null, failure: 'wrong' });
  });
});

test("an opened module has a key of its own in Vitest's cache for each choice of names", () => {
  const id = join(root, FILE);
  const keyOf = (...places: Place[]) => {
    let key: CacheKeyIdGenerator | undefined;
    const hook = openModules(root, places).configureVitest as (context: unknown) => void;
    hook({ experimental_defineCacheKeyGenerator: (generator: CacheKeyIdGenerator) => (key = generator) });
    return key?.({ id, sourceCode: 'export const one = 1;\nexport const two = 2;\n' } as CacheKeyIdGeneratorContext);
  };
  expect(keyOf(place('one'))).toBe(keyOf(place('one')));
  expect(new Set([keyOf(), keyOf(place('one')), keyOf(place('two')), keyOf(place('one'), place('two'))]).size).toBe(4);
  expect(keyOf({ ...place('one'), file: 'other.ts' })).toBeUndefined();
});

test('an error has another code, also in subclasses, unless the test made it', async () => {
  class Failure {
    readonly code: string;
    constructor(code: string) {
      this.code = code;
    }
  }
  class Local extends Failure {}
  const declarations = { Failure: { get: () => Failure, set: () => {} }, Local: { get: () => Local } };
  openModule({ ...proof, replacement: { kind: 'error', places: [place('Failure')], value: 'TIMEOUT' } }, FILE, declarations);
  const elsewhere = 'data:text/javascript,export const make = (Local, code) => new Local(code);';
  const { make } = await import(/* @vite-ignore */ elsewhere);
  expect(['TIMEOUT', 'CLOSED'].map((code) => make(Local, code).code)).toEqual(['UNKNOWN', 'CLOSED']);
  expect(new Local('TIMEOUT').code).toBe('TIMEOUT');
});

describe('where a symbol is', () => {
  test.each([
    ['device:Device.start', 'device/device.ts', 'Device', true],
    ['client:errorGetMessage', 'protocol/errors/catalogue.ts', 'errorMeaning', true],
    ['client:SvcClient.stop', 'client/node.ts', 'SvcClient', true],
    ['device:Stream.write', 'runtime/session/stream.ts', 'Stream', true],
    ['device:DeviceStream.accept', 'device/streams.ts', 'DeviceStream', false],
  ])('%s', (symbol, file, name, isValue) => {
    expect(placeOf(root, symbol)).toMatchObject({ file, name, isValue });
  });

  test('a symbol that does not exist, or is only a type, has no replacement', () => {
    const row = { kind: 'operation', where: [], path: '' } as unknown as Row;
    expect(replacementOf(root, { ...row, symbol: 'device:Gadget' })).toBe('no source of device:Gadget');
    expect(replacementOf(root, { ...row, symbol: 'device:DeviceStream.accept' })).toMatch(/is a type/);
  });
});

test('a title names its test, a template all its tests', () => {
  const names = ['device settings start twice', 'device settings start twice more', 'codes TIMEOUT: late', 'codes 3 of 4'];
  const matching = (title: string) => names.filter((name) => namesOf(title).test(name));
  expect(matching('start twice')).toEqual(['device settings start twice']);
  expect(matching('%s: %s')).toEqual(['codes TIMEOUT: late']);
  expect(matching('$one of $other')).toEqual(['codes 3 of 4']);
  expect(names.filter((name) => exactly(['codes 3 of 4']).test(name))).toEqual(['codes 3 of 4']);
});

describe('a run', () => {
  const row = (symbol: string) => ({ symbol, test: `test/${symbol}.test.ts > works`, kind: 'type', where: [], path: '' }) as unknown as Row;
  const claims = Array.from({ length: 40 }, (_, at) => {
    const symbol = `gadget${at}:Gadget`;
    return { key: symbol, row: row(symbol), names: [symbol], file: `test/gadget${at}.test.ts`, title: 'works' };
  });
  const changed = claims.slice(0, 3);
  const cache = { has: (claim: (typeof claims)[number]) => !changed.includes(claim) };
  const chosen = (options: Parameters<typeof select>[3]) => select(root, claims, cache, options).claims.map(({ key }) => key);

  test('proves what changed and a different tenth of the rest each time, and everything in ten runs', () => {
    const runs = Array.from({ length: 10 }, (_, tenth) => chosen({ all: false, tenth }));
    for (const run of runs) {
      expect(run.slice(0, 3)).toEqual(changed.map(({ key }) => key));
      expect(run.length - 3).toBeLessThanOrEqual(4);
    }
    expect(new Set(runs.flat()).size).toBe(claims.length);
  });

  test('proves everything on request, or when git does not know the commit to compare with', { tags: ['slow'] }, () => {
    expect(chosen({ all: true })).toHaveLength(claims.length);
    const nothing = { has: () => false };
    expect(select(root, claims, nothing, { all: false, since: 'no-such-commit' }).claims).toHaveLength(claims.length);
  });
});
