/** A race of attempts in virtual time: pacing, winner, losers, errors. */
import { describe, expect, it } from 'vitest';
import { type Clock, silentLog } from '../../platform/environment.ts';
import { type ErrorCode, LocalError, type SvcError } from '../../protocol/errors/index.ts';
import { type Attempt, abortable, type Failure, inOrder, mostTelling, Race } from '../../runtime/race.ts';
import { ManualClock } from '../support/manual-clock.ts';

const ERROR = (code: ErrorCode): LocalError => new LocalError(code, code);

/** A clock that the test advances, and attempts whose outcome the test decides. */
class Track {
  readonly clock = new ManualClock(1000);
  errors: string[] = [];
  /** Names of the attempts in the order in which they started, with the time. */
  started: [string, number][] = [];
  cancelled: string[] = [];
  discarded: string[] = [];
  summaries: (readonly Failure[])[] = [];
  readonly #outcomes = new Map<string, { resolve: (value: string) => void; reject: (error: unknown) => void }>();

  race(delay: number): Race<string> {
    return new Race<string>({
      environment: { clock: this.clock, log: { ...silentLog, error: (message) => void this.errors.push(message) } },
      delay,
      discard: (result) => void this.discarded.push(result),
      summarize: (failures) => {
        this.summaries.push([...failures]);
        return mostTelling(failures.map(({ error }) => error)) ?? ERROR('NOT_FOUND');
      },
    });
  }

  attempt(name: string, cancel: () => void = () => {}): () => Attempt<string> {
    return () => {
      this.started.push([name, this.clock.now()]);
      const result = new Promise<string>((resolve, reject) => this.#outcomes.set(name, { resolve, reject }));
      return {
        result,
        cancel: () => {
          this.cancelled.push(name);
          cancel();
        },
      };
    };
  }

  async succeed(name: string): Promise<void> {
    this.#outcomes.get(name)!.resolve(name);
    await settled();
  }

  async fail(name: string, code: ErrorCode = 'TIMEOUT'): Promise<void> {
    this.#outcomes.get(name)!.reject(ERROR(code));
    await settled();
  }
}

/** All callbacks of settled promises have run. */
async function settled(): Promise<void> {
  for (let i = 0; i < 5; i++) await undefined;
}

function outcome(race: Race<string>): { value?: string; error?: SvcError } {
  const seen: { value?: string; error?: SvcError } = {};
  race.result.then(
    (value) => Object.assign(seen, { value }),
    (error) => Object.assign(seen, { error }),
  );
  return seen;
}

function racing(delay: number) {
  const track = new Track();
  const race = track.race(delay);
  return { track, race, seen: outcome(race) };
}

describe('pacing', () => {
  it('starts an attempt each delay after the previous one', () => {
    const { track, race } = racing(250);
    for (const name of ['a', 'b', 'c']) race.add(track.attempt(name));
    race.end();
    track.clock.pass(1000);
    expect(track.started).toEqual([
      ['a', 1000],
      ['b', 1250],
      ['c', 1500],
    ]);
    expect(track.clock.timers).toEqual([]);
  });

  it('starts the next one at once when one has failed, and paces from there', async () => {
    const { track, race } = racing(250);
    for (const name of ['a', 'b', 'c']) race.add(track.attempt(name));
    track.clock.pass(100);
    await track.fail('a');
    track.clock.pass(1000);
    expect(track.started).toEqual([
      ['a', 1000],
      ['b', 1100],
      ['c', 1350],
    ]);
  });

  it('starts all at once without a delay', () => {
    const { track, race } = racing(0);
    for (const name of ['a', 'b', 'c']) race.add(track.attempt(name));
    expect(track.started.map(([name]) => name)).toEqual(['a', 'b', 'c']);
  });

  it('waits for a failure when the delay is infinite', async () => {
    const { track, race } = racing(Number.POSITIVE_INFINITY);
    for (const name of ['a', 'b']) race.add(track.attempt(name));
    track.clock.pass(1e9);
    expect(track.started).toHaveLength(1);
    await track.fail('a');
    expect(track.started).toHaveLength(2);
  });

  it('delays one that is added within the delay, and none that is added later or after a failure', async () => {
    const { track, race } = racing(250);
    race.add(track.attempt('a'));
    track.clock.pass(100);
    race.add(track.attempt('b'));
    track.clock.pass(1000);
    race.add(track.attempt('c'));
    await track.fail('a');
    race.add(track.attempt('d'));
    expect(track.started).toEqual([
      ['a', 1000],
      ['b', 1250],
      ['c', 2100],
      ['d', 2100],
    ]);
  });

  it('treats an exception of start as a failure, and starts the next one at once', async () => {
    const { track, race, seen } = racing(250);
    race.add(() => {
      throw ERROR('INVALID_ARGUMENT');
    });
    race.add(track.attempt('b'));
    race.end();
    expect(track.started).toEqual([['b', 1000]]);
    await track.fail('b');
    expect(seen.error?.code).toBe('INVALID_ARGUMENT');
  });
});

describe('winner', () => {
  it('is the first that succeeds; the others are cancelled and waiting ones never start', async () => {
    const { track, race, seen } = racing(250);
    for (const name of ['a', 'b', 'c']) race.add(track.attempt(name));
    track.clock.pass(250);
    await track.succeed('b');
    expect(seen.value).toBe('b');
    track.clock.pass(1000);
    race.add(track.attempt('d'));
    expect(track.started.map(([name]) => name)).toEqual(['a', 'b']);
    expect(track.cancelled).toEqual(['a']);
    expect(track.clock.timers).toEqual([]);
  });

  it('is one alone: later successes are discarded', async () => {
    const { track, race, seen } = racing(0);
    for (const name of ['a', 'b', 'c']) race.add(track.attempt(name));
    await track.succeed('c');
    await track.succeed('a');
    await track.fail('b');
    expect([seen.value, track.discarded, track.summaries]).toEqual(['c', ['a'], []]);
  });

  it('is not disturbed by a loser whose cancel throws', async () => {
    const { track, race, seen } = racing(0);
    const bug = (): void => {
      throw new Error('bug');
    };
    race.add(track.attempt('a', bug));
    race.add(track.attempt('b'));
    race.add(track.attempt('c'));
    await track.succeed('b');
    expect([seen.value, track.cancelled, track.errors]).toEqual(['b', ['a', 'c'], ['cancelling an attempt threw']]);
  });
});

describe('failure', () => {
  it('comes when all have failed and none is to come, with the failures in their order', async () => {
    const { track, race, seen } = racing(0);
    for (const name of ['a', 'b']) race.add(track.attempt(name));
    await track.fail('b', 'WRONG_DEVICE_ID');
    await track.fail('a', 'WRONG_PRODUCT_ID');
    expect(seen).toEqual({});
    race.end();
    await settled();
    expect(seen.error?.code).toBe('WRONG_DEVICE_ID');
    expect(track.summaries).toEqual([
      [
        { attempt: 1, error: ERROR('WRONG_DEVICE_ID') },
        { attempt: 0, error: ERROR('WRONG_PRODUCT_ID') },
      ],
    ]);
  });

  it('comes at once when there is no attempt', async () => {
    const { track, race, seen } = racing(250);
    race.end();
    race.end();
    await settled();
    expect([seen.error?.code, track.summaries]).toEqual(['NOT_FOUND', [[]]]);
    race.add(track.attempt('late'));
    expect(track.started).toEqual([]);
  });
});

describe('stop', () => {
  it('before any attempt has started lets none start', async () => {
    const { track, race, seen } = racing(250);
    race.cancel();
    race.add(track.attempt('a'));
    race.end();
    await settled();
    expect([seen.error?.code, track.started]).toEqual(['STOPPED', []]);
  });

  it('cancels running attempts, drops waiting ones, and discards a winner that comes after it', async () => {
    const { track, race, seen } = racing(250);
    for (const name of ['a', 'b', 'c']) race.add(track.attempt(name));
    track.clock.pass(300);
    race.stop(ERROR('CLOSED'));
    await track.succeed('a');
    await track.fail('b');
    track.clock.pass(1000);
    expect([seen.error?.code, track.cancelled, track.discarded]).toEqual(['CLOSED', ['a', 'b'], ['a']]);
    expect(track.started).toHaveLength(2);
    expect(track.clock.timers).toEqual([]);
  });

  it('summarizes the failures so far when it has no error', async () => {
    const { track, race, seen } = racing(0);
    for (const name of ['a', 'b']) race.add(track.attempt(name));
    await track.fail('a', 'WRONG_DEVICE_ID');
    race.stop();
    await settled();
    expect(seen.error?.code).toBe('WRONG_DEVICE_ID');
  });

  it('after the decision changes nothing', async () => {
    const { track, race, seen } = racing(0);
    race.add(track.attempt('a'));
    await track.succeed('a');
    race.stop(ERROR('CLOSED'));
    race.cancel();
    await settled();
    expect([seen, track.cancelled, track.discarded]).toEqual([{ value: 'a' }, [], []]);
  });

  it('by an attempt that starts cancels that attempt, too', async () => {
    const { track, race, seen } = racing(0);
    const start = track.attempt('a');
    race.add(() => {
      race.stop(ERROR('CLOSED'));
      return start();
    });
    await track.succeed('a');
    expect([seen.error?.code, track.cancelled, track.discarded]).toEqual(['CLOSED', ['a'], ['a']]);
  });

  it('logs a discard that throws', async () => {
    const errors: string[] = [];
    const race = new Race<string>({
      environment: { clock: { now: () => 0 } as Clock, log: { ...silentLog, error: (message) => void errors.push(message) } },
      delay: 0,
      discard: () => {
        throw new Error('bug');
      },
      summarize: () => ERROR('NOT_FOUND'),
    });
    race.add(() => ({ result: Promise.resolve('a'), cancel: () => {} }));
    race.cancel();
    await settled();
    expect(errors).toEqual(['discarding a late result threw']);
  });
});

describe('attempts', () => {
  it('may be races, which their cancel stops', async () => {
    const track = new Track();
    const outer = track.race(0);
    const inner = track.race(0);
    outer.add(() => inner);
    inner.add(track.attempt('a'));
    outer.cancel();
    await expect(inner.result).rejects.toMatchObject({ code: 'STOPPED' });
    expect(track.cancelled).toEqual(['a']);
  });

  it('may be promises with a signal', () => {
    const seen: AbortSignal[] = [];
    const one = abortable((signal) => {
      seen.push(signal);
      return new Promise(() => {});
    });
    expect(seen[0]!.aborted).toBe(false);
    one.cancel();
    expect(seen[0]!.aborted).toBe(true);
  });
});

describe('the most informative error', () => {
  it.each<[ErrorCode[], ErrorCode | undefined]>([
    [['TIMEOUT', 'STOPPED', 'UNKNOWN', 'FINGERPRINT_MISMATCH'], 'FINGERPRINT_MISMATCH'],
    [['TIMEOUT', 'DNS', 'UNKNOWN'], 'DNS'],
    [['STOPPED', 'TIMEOUT'], 'TIMEOUT'],
    [['STOPPED'], 'STOPPED'],
    [[], undefined],
  ])('of %j is %s', (codes, most) => {
    expect(mostTelling(codes.map(ERROR))?.code).toBe(most);
  });

  it('is none when the rank says so', () => {
    const rank = ({ code }: SvcError): number => (code === 'CLOSED' ? 1 : Number.POSITIVE_INFINITY);
    expect(mostTelling([ERROR('DNS')], rank)).toBeNull();
    expect(mostTelling([ERROR('DNS'), ERROR('CLOSED')], rank)?.code).toBe('CLOSED');
  });

  it('can be selected from the failures in the order of the attempts', () => {
    const failures = [
      { attempt: 1, error: ERROR('DNS') },
      { attempt: 0, error: ERROR('CLOSED') },
    ];
    expect(inOrder(failures).map(({ code }) => code)).toEqual(['CLOSED', 'DNS']);
  });
});
