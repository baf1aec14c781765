/** Tables of snapshots and the resulting events. */
import { describe, expect, it } from 'vitest';
import {
  type HostInterface,
  LOOK_INTERVAL,
  type NetworkEvent,
  NetworkMonitor,
  type NetworkSnapshot,
} from '../../../protocol/roaming/index.ts';

const CABLE = '192.0.2.10';
const WIFI = '198.51.100.20';
const STATION = '203.0.113.1';

function from(source: string | null): NetworkSnapshot {
  return { sources: new Map([[STATION, source]]) };
}

function on(...interfaces: readonly (readonly [string, HostInterface['kind'], ...string[]])[]): NetworkSnapshot {
  return { interfaces: interfaces.map(([name, kind, ...addresses]) => ({ name, kind, addresses })) };
}

/** Looks once a second. */
function looks(snapshots: readonly NetworkSnapshot[], monitor = new NetworkMonitor()): (NetworkEvent | null)[] {
  return snapshots.map((snapshot, i) => monitor.look(snapshot, { now: i * LOOK_INTERVAL, wallTime: 1e12 + i * LOOK_INTERVAL }));
}

describe('a change of network', () => {
  it.each<[string, NetworkSnapshot[], (NetworkEvent | null)[]]>([
    ['is another source address', [from(CABLE), from(CABLE), from(WIFI), from(WIFI)], [null, null, 'changed', null]],
    ['is reverted before it is settled', [from(CABLE), from(WIFI), from(CABLE), from(CABLE)], [null, 'changed', 'reverted', null]],
    ['may be followed by another one', [from(CABLE), from(WIFI), from('192.0.2.99'), from(WIFI)], [null, 'changed', 'changed', 'changed']],
    ['is not reported while there is no route', [from(CABLE), from(null), from(null)], [null, null, null]],
    ['is not reported when the same route returns', [from(CABLE), from(null), from(CABLE)], [null, null, 'back']],
    ['is reported when another route appears', [from(CABLE), from(null), from(WIFI)], [null, null, 'changed']],
    ['is not reported while the host waits for an address', [from(CABLE), from('169.254.7.7'), from(CABLE)], [null, null, 'back']],
    ['is not reported on the first look, with or without a route', [from(null), from(CABLE)], [null, 'back']],
  ])('%s', (_, snapshots, events) => {
    expect(looks(snapshots)).toEqual(events);
  });

  it('is final once settled', () => {
    const monitor = new NetworkMonitor();
    const at = (i: number) => ({ now: i * 1000, wallTime: i * 1000 });
    monitor.look(from(CABLE), at(0));
    expect(monitor.look(from(WIFI), at(1))).toBe('changed');
    monitor.settle();
    expect(monitor.look(from(CABLE), at(2))).toBe('changed');
    expect(monitor.look(from(WIFI), at(3))).toBe('reverted');
  });

  it('is not reported for new destinations, and removed ones are forgotten', () => {
    const to = (...entries: [string, string][]): NetworkSnapshot => ({ sources: new Map(entries) });
    const steps = [to(['a', CABLE]), to(['a', CABLE], ['b', '10.8.0.2']), to(['b', '10.8.0.2']), to(['a', WIFI], ['b', '10.8.0.2'])];
    expect(looks(steps)).toEqual([null, null, null, null]);
  });
});

describe('without source addresses,', () => {
  const v4 = `${CABLE}/24`;
  const v6 = '2001:db8:1::a1/64';
  it.each<[string, NetworkSnapshot[], (NetworkEvent | null)[]]>([
    [
      'another interface with the default route is a change',
      [on(['eth0', 'default', v4], ['wlan0', 'other', `${WIFI}/24`]), on(['wlan0', 'default', `${WIFI}/24`])],
      [null, 'changed'],
    ],
    [
      'container bridges and VPNs without the default route are no change',
      [
        on(['eth0', 'default', v4]),
        on(['eth0', 'default', v4], ['docker0', 'virtual', '172.17.0.1/16'], ['wg0', 'virtual', '10.8.0.2/24']),
      ],
      [null, null],
    ],
    [
      'a second interface is no change',
      [on(['eth0', 'default', v4]), on(['eth0', 'default', v4], ['wlan0', 'default', `${WIFI}/24`])],
      [null, null],
    ],
    [
      'rotating temporary IPv6 addresses are no change',
      [
        on(['eth0', 'default', v6, '2001:db8:1::b1/64']),
        on(['eth0', 'default', v6, '2001:db8:1::c1/64']),
        on(['eth0', 'default', '2001:db8:1::c1/64']),
      ],
      [null, null, null],
    ],
    ['another IPv6 network is a change', [on(['eth0', 'default', v6]), on(['eth0', 'default', '2001:db8:2::a1/64'])], [null, 'changed']],
    ['a network without a default route counts', [on(['eth0', 'other', v4]), on(['eth0', 'other', `${WIFI}/24`])], [null, 'changed']],
    ['a host that reports nothing has no change', [{}, {}, {}], [null, null, null]],
  ])('%s', (_, snapshots, events) => {
    expect(looks(snapshots)).toEqual(events);
  });
});

describe('a sleep', () => {
  const still = from(CABLE);
  it.each<[string, { now: number; wallTime: number }[], (NetworkEvent | null)[]]>([
    [
      'is detected by the wall clock when the monotonic one stands still',
      times([0, 0], [1000, 1000], [2000, 62_000], [3000, 63_000]),
      [null, null, 'slept', null],
    ],
    ['is detected by the monotonic clock when that continues', times([0, 0], [60_000, 60_000], [61_000, 61_000]), [null, 'slept', null]],
    ['is also reported once when the clock was set forward', times([0, 0], [1000, 3e10], [2000, 3e10 + 1000]), [null, 'slept', null]],
    ['is not reported when the clock was set back', times([0, 3e10], [1000, 1000], [2000, 2000]), [null, null, null]],
    ['is not reported for a step of NTP', times([0, 0], [1000, 2900], [2000, 3900]), [null, null, null]],
    ['is not reported when the host was busy for two seconds', times([0, 0], [2900, 2900]), [null, null]],
  ])('%s', (_, at, events) => {
    const monitor = new NetworkMonitor();
    expect(at.map((time) => monitor.look(still, time))).toEqual(events);
  });

  it('in another network is a change', () => {
    const monitor = new NetworkMonitor();
    monitor.look(from(CABLE), { now: 0, wallTime: 0 });
    expect(monitor.look(from(WIFI), { now: 1000, wallTime: 60_000 })).toBe('changed');
  });

  it('is not reported for a time in which the monitor was stopped', () => {
    const monitor = new NetworkMonitor();
    monitor.look(from(CABLE), { now: 0, wallTime: 0 });
    monitor.stop();
    expect(monitor.look(from(WIFI), { now: 60_000, wallTime: 60_000 })).toBeNull();
  });
});

describe('datagrams that cannot be sent', () => {
  it('cause the next look at once, but not more often than every 100 ms', () => {
    const monitor = new NetworkMonitor();
    expect(monitor.nextTimeout()).toBe(Number.NEGATIVE_INFINITY);
    monitor.look(from(CABLE), { now: 0, wallTime: 0 });
    expect(monitor.nextTimeout()).toBe(1000);
    monitor.sendFailed();
    expect(monitor.nextTimeout()).toBe(100);
  });

  it('are reported when there is a route, once in five seconds', () => {
    const monitor = new NetworkMonitor();
    const reports = [0, 1000, 2000, 3000, 4000, 5000, 6000].map((now) => {
      if (now > 0) monitor.sendFailed();
      return monitor.look(from(CABLE), { now, wallTime: now });
    });
    expect(reports).toEqual([null, 'unreachable', null, null, null, null, 'unreachable']);
  });

  it('are not reported when there is none', () => {
    const monitor = new NetworkMonitor();
    monitor.look(from(CABLE), { now: 0, wallTime: 0 });
    monitor.sendFailed();
    expect(monitor.look(from(null), { now: 100, wallTime: 100 })).toBeNull();
  });

  it('make a change known sooner', () => {
    const monitor = new NetworkMonitor();
    monitor.look(from(CABLE), { now: 0, wallTime: 0 });
    monitor.sendFailed();
    expect(monitor.look(from(WIFI), { now: 100, wallTime: 100 })).toBe('changed');
  });
});

function times(...pairs: [number, number][]): { now: number; wallTime: number }[] {
  return pairs.map(([now, wallTime]) => ({ now, wallTime }));
}
