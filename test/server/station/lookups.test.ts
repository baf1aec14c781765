/** Questions to the directory, without a base station: which are asked, asked again, given up and refused. */
import { beforeEach, expect, test } from 'vitest';
import type { Session } from '../../../runtime/session/index.ts';
import { Connects } from '../../../server/station/connects.ts';
import type { Directory, Location } from '../../../server/station/directory.ts';
import { type LookupResult, Lookups } from '../../../server/station/lookups.ts';
import { defaultSettings } from '../../../server/station/settings.ts';
import { ids } from '../../support/fixture/identifiers.ts';
import { nativeSimulation } from '../../support/simulation.ts';

interface Question {
  readonly signal: AbortSignal;
  readonly answer: (location: Location | null) => void;
}

let questions: Question[];
let connects: Connects;
let lookups: Lookups;
let simulation: ReturnType<typeof nativeSimulation>;
let locate: Directory['locate'];

const session = (address = '192.0.2.1') => ({ isOpen: true, paths: { active: { address } } }) as unknown as { isOpen: boolean } & Session;
const ended = (): Session => ({ isOpen: false }) as Session;
const at = (where: Session) => ({ location: { at: 'here', session: where } as Location });
const ask = (from: Session = session()): Promise<LookupResult> =>
  lookups.locate(connects.begin({ session: from, exchange: 1, request: ids, mayWait: false }));
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Its directory answers when the test does, and ignores that a question is given up. */
beforeEach(() => {
  questions = [];
  connects = new Connects(defaultSettings);
  locate = (_device, { signal }) => new Promise((answer) => questions.push({ signal, answer }));
  simulation = nativeSimulation();
  const { clock, log } = simulation.host('station');
  const directory: Directory = { locate: (...question) => locate(...question) };
  lookups = new Lookups({ directory, clock, log, limits: { perKey: 2, total: 3 }, timeout: 2_000 });
});

test('a session that ends while its question is sent leaves nothing pending', async () => {
  let notified = false;
  locate = (_device, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.onabort = () => {
        notified = true;
        reject(new Error('given up'));
      };
    });
  const ending = session();
  const located = ask(ending);
  connects.ended(ending);
  expect(await located).toEqual({ location: null });
  await null;
  expect({ notified, size: lookups.size }).toEqual({ notified: true, size: 0 });
});

test('the answer to a session that left is ignored; its question is pending until then', async () => {
  const leaving = session();
  const located = ask(leaving);
  await turn();
  connects.ended(leaving);
  expect([await located, questions[0]!.signal.aborted, lookups.size]).toEqual([{ location: null }, true, 1]);
  questions[0]!.answer(at(session()).location);
  await turn();
  expect([await located, lookups.size]).toEqual([{ location: null }, 0]);
});

test('an answer with a session that has ended names no location, and is not asked for again', async () => {
  const located = ask();
  questions[0]!.answer(at(ended()).location);
  expect([await located, questions.length, lookups.size]).toEqual([{ location: null }, 1, 0]);
});

test.each([
  ['with a session that was replaced', at(ended()).location],
  ['that a device is unknown', null],
])('an answer %s is asked for again if the device has attached meanwhile', async (_, past) => {
  const located = ask();
  await turn();
  connects.attached(ids);
  questions[0]!.answer(past);
  await turn();
  const present = at(session());
  questions[1]!.answer(present.location);
  expect([await located, questions.length]).toEqual([present, 2]);
});

test('a device that attaches again and again is not asked for after 2 s', async () => {
  const located = ask();
  for (let index = 0; index < 30; index++) {
    await simulation.run(100);
    connects.attached(ids);
    questions[index]?.answer(null);
    await turn();
  }
  expect([await located, questions.length, lookups.size]).toEqual([{ failure: 'unanswered' }, 20, 0]);
});

test('a directory that throws has not answered', async () => {
  locate = () => {
    throw new Error('not configured');
  };
  expect([await ask(), lookups.size]).toEqual([{ failure: 'unanswered' }, 0]);
});

test('questions that are not settled hold their places, of one address and in all, also once they are given up', async () => {
  const located = [ask(), ask()];
  expect(await ask()).toEqual({ failure: 'busy' });
  located.push(ask(session('192.0.2.2')));
  expect(await ask(session('192.0.2.3'))).toEqual({ failure: 'busy' });
  await simulation.run(1_999);
  expect(questions.map(({ signal }) => signal.aborted)).toEqual([false, false, false]);
  await simulation.run(1);
  expect(await Promise.all(located)).toEqual(Array(3).fill({ failure: 'unanswered' }));
  expect([questions.map(({ signal }) => signal.aborted), lookups.size]).toEqual([[true, true, true], 3]);
  expect(await ask()).toEqual({ failure: 'busy' });
  for (const { answer } of questions) answer(null);
  await turn();
  expect(lookups.size).toBe(0);
  void ask();
  expect(questions).toHaveLength(4);
});
