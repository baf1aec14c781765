/** A restart gives an attacker no new attempts at a password. */
import { beforeEach, describe, expect, it } from 'vitest';
import { PasswordThrottle } from '../../../device/password/throttle.ts';
import { ThrottleKeeper } from '../../../device/password/throttle-keeper.ts';
import type { Simulation } from '../../../testing/index.ts';
import { nativeHost } from '../../support/crypto.ts';
import { nativeSimulation } from '../../support/simulation.ts';

const SECOND = 1_000;
const MINUTE = 60_000;
const YEAR = 365 * 86_400_000;
/** The longest wait for one name. */
const LONGEST = 15 * MINUTE;

let sim: Simulation;
/** The document on the disk, as text; undefined: none. */
let disk: string | undefined;
let saves: number;
let warnings: string[];
let full: boolean;
let starts = 0;

beforeEach(() => {
  sim = nativeSimulation();
  [disk, saves, warnings, full] = [undefined, 0, [], false];
});

/** A device that starts with the document on the disk. @param wallTime its clock, Unix ms; default the simulation's */
function started(wallTime: number = sim.wallTime) {
  const host = sim.host(`device ${++starts}`);
  host.setWallTime(wallTime);
  const { clock } = host;
  const { hmacSha256 } = nativeHost(1);
  const throttle = new PasswordThrottle((text) => hmacSha256(Uint8Array.of(1), new TextEncoder().encode(text))[0]!);
  const log = { error() {}, warn: (text: string) => warnings.push(text), info() {}, debug() {}, trace() {} };
  const save = async (document: unknown): Promise<void> => {
    if (full) throw new Error('the disk is full');
    saves++;
    disk = JSON.stringify(document);
  };
  const store = { stored: disk === undefined ? undefined : JSON.parse(disk), save };
  const keeper = new ThrottleKeeper({ clock, log, throttle, store });
  /** Tries wrong passwords at one moment. @returns how many were evaluated */
  const guess = (count = 100, name = 'owner'): number => {
    let looked = 0;
    for (let index = 0; index < count; index++) {
      if (throttle.charge('remote', name, clock.now()) === null) continue;
      looked++;
      keeper.changed();
    }
    return looked;
  };
  return { guess, close: () => sim.settle(keeper.close()), clock };
}

describe('after an orderly end', () => {
  it('a blocked name stays blocked for the rest of its time', async () => {
    const first = started();
    for (let second = 0; second < 20; second++) {
      first.guess(1);
      await sim.run(SECOND);
    }
    await first.close();
    const second = started();
    expect(second.guess()).toBe(0);
    await sim.run(2 * MINUTE);
    expect(second.guess()).toBe(1);
  });

  it('the budget of the class is the same, and other names are not blocked', async () => {
    const first = started();
    for (let name = 0; name < 10; name++) first.guess(1, `name-${name}`);
    await first.close();
    const second = started();
    expect(second.guess(1, 'another')).toBe(0);
    await sim.run(SECOND);
    expect(second.guess(1, 'another')).toBe(1);
  });

  it('the failures of a day still count', async () => {
    let looked = 0;
    for (let restart = 0; restart < 30; restart++) {
      const device = started();
      for (let hour = 0; hour < 4; hour++) {
        looked += device.guess(3);
        await sim.run(12 * MINUTE);
      }
      await device.close();
    }
    expect(looked).toBeLessThanOrEqual(120);
  });

  it('nothing is written if nothing happened', async () => {
    const device = started();
    await sim.run(10 * MINUTE);
    await device.close();
    expect([saves, disk]).toEqual([0, undefined]);
  });
});

describe('when the wall clock was set between two runs', () => {
  /** Wrong attempts until the longest wait; returns the time of the wall clock when the device was closed. */
  async function exhausted(): Promise<number> {
    const device = started();
    for (let looked = 0; looked < 15; looked += device.guess(1)) await sim.run(SECOND);
    await device.close();
    return device.clock.wallTime();
  }

  it('ahead, as by NTP on a board without a clock of its own, one more attempt at a name is free, not five', async () => {
    const closedAt = await exhausted();
    expect(started(closedAt + 50 * YEAR).guess()).toBe(1);
  });

  it('back, a wait is over after its time, whether or not the device restarts meanwhile', async () => {
    const closedAt = await exhausted();
    for (let part = 0; part < 3; part++) {
      const device = started(closedAt - YEAR + (part * LONGEST) / 3);
      expect(device.guess()).toBe(0);
      await sim.run(LONGEST / 3);
      await device.close();
    }
    expect(started(closedAt - YEAR + LONGEST).guess()).toBe(1);
  });
});

describe('after a kill', () => {
  it('no attempts are saved up', async () => {
    started().guess(1);
    await sim.run(SECOND);
    const next = started();
    expect([next.guess(1, 'another'), next.guess(1, 'a third')]).toEqual([0, 0]);
    await sim.run(SECOND);
    expect(next.guess(1, 'another')).toBe(1);
  });

  it('a thousand kills give at most one attempt a second', { tags: ['slow'] }, async () => {
    let looked = 0;
    for (let kill = 0; kill < 300; kill++) {
      looked += started().guess(20, `name-${kill % 50}`);
      await sim.run(100);
    }
    expect(looked).toBeLessThanOrEqual(10 + 30);
  });

  it('an orderly end restores the budget', async () => {
    started().guess(1);
    await sim.run(SECOND);
    await started().close();
    await sim.run(MINUTE);
    expect(started().guess(3, 'another')).toBe(3);
  });
});

describe('the document', () => {
  it('is saved at once, then once a minute at most', async () => {
    const device = started();
    device.guess(1);
    await sim.run(1);
    expect(saves).toBe(1);
    for (let second = 0; second < 300; second++) {
      device.guess(1, `name-${second}`);
      await sim.run(SECOND);
    }
    expect(saves).toBeLessThanOrEqual(6);
    expect(saves).toBeGreaterThanOrEqual(5);
  });

  it.each([
    ['no JSON document', '"x"'],
    ['another version', '{"Version": 2}'],
    ['a slot that is not there', '{"Version":1,"Saved":1,"Clean":true,"Classes":{"paired":{"Failures":1,"Slots":[[256,1,1,1,1,1]]}}}'],
    ['nothing', 'null'],
  ])('that is invalid (%s) leaves no attempts saved up, and is logged', async (_, text) => {
    disk = text;
    const device = started();
    expect(device.guess(1)).toBe(0);
    expect(warnings).toHaveLength(1);
    await sim.run(SECOND);
    expect(device.guess(1)).toBe(1);
  });

  it('that cannot be saved on a full disk blocks no login: this is logged, and tried again', async () => {
    full = true;
    const device = started();
    device.guess(1);
    await sim.run(SECOND);
    expect(warnings).toEqual(['failed password attempts could not be saved']);
    full = false;
    device.guess(1);
    await device.close();
    expect(JSON.parse(disk!)).toMatchObject({ Version: 1, Clean: true });
  });

  it('contains no names', async () => {
    const device = started();
    device.guess(1, 'owner');
    await device.close();
    expect(disk).not.toContain('owner');
  });
});
