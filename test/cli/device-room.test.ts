/** What the room of `svc device` reports: to observers of the thermostat, and to users that an alarm concerns. */
import { setImmediate as nextTask } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { pushError } from '../../cli/dev/push-errors.ts';
import { CATEGORIES, type Notification, Notifications, type Sent } from '../../cli/device-app/notifications.ts';
import { OverTemperature } from '../../cli/device-app/over-temperature.ts';
import { Thermostat, type ThermostatDevice } from '../../cli/device-app/thermostat.ts';
import type { Iam } from '../../device/iam/index.ts';
import type { CoapHandler, Device, DeviceConnection, DeviceEventListener, PushNotification } from '../../device/index.ts';
import { silentLog } from '../../platform/environment.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { iamOf, stateOf, user } from '../device/iam/model.ts';

describe('over-temperature is reported', () => {
  test.each([
    ['once at the limit, once when it is 1 °C below', [27, 28, 29, 27.5, 27.1, 27, 26], ['', 'raised', '', '', '', 'cleared', '']],
    ['not again while it wavers', [28, 27.9, 28, 27.2, 28], ['raised', '', '', '', '']],
    ['again after it fell', [28, 20, 28, 20], ['raised', 'cleared', 'raised', 'cleared']],
    ['at once when it begins hot', [40], ['raised']],
    ['never below', [10, 27.9, 10], ['', '', '']],
  ])('%s', (_, temperatures, edges) => {
    const alarm = new OverTemperature(28);
    expect(temperatures.map((temperature) => alarm.observe(temperature) ?? '')).toEqual(edges);
  });

  test.each([
    ['not again while it is hot', [30, 27.5], ['', '']],
    ['that it is over, when it became cool meanwhile', [20, 30], ['cleared', 'raised']],
  ])('after a restart, when it had been raised: %s', (_, temperatures, edges) => {
    const alarm = new OverTemperature(28, true);
    expect(temperatures.map((temperature) => alarm.observe(temperature) ?? '')).toEqual(edges);
  });
});

describe('thermostat', () => {
  /** Handlers by `METHOD path`, notifications in their order, and a clock. */
  function scene(allowed: readonly string[]) {
    const handlers = new Map<string, CoapHandler>();
    const notified: string[] = [];
    const saved: unknown[] = [];
    const clock = { now: 0 };
    const device: ThermostatDevice = {
      addCoapResource(method, path, handler, { observable = false } = {}) {
        handlers.set(`${method} ${path}`, handler);
        expect(observable).toBe(method === 'GET');
        return { observers: 0, notify: () => notified.push(path), remove: () => {} };
      },
      authorize: async (_connection, action) => allowed.includes(action),
    };
    const disk = { full: false };
    const thermostat = new Thermostat({
      state: { Target: 20, Mode: 'heat', Temperature: 20, Time: 0, BoostUntil: 0 },
      save: async (state) => {
        if (disk.full) throw new LocalError('FAILED', 'the disk is full');
        saved.push(state);
      },
      timeConstant: 10,
      now: () => clock.now,
    });
    thermostat.install(device);
    const request = async (method: 'GET' | 'PUT' | 'POST', path: string, payload = '') => {
      const handler = handlers.get(`${method} ${path}`) as CoapHandler;
      const connection = {} as DeviceConnection;
      return handler({ method, path, parameters: {}, contentFormat: 0, payload: new TextEncoder().encode(payload), connection });
    };
    return { thermostat, request, notified, saved, clock, disk };
  }

  test('requires separate actions for reading and changing', async () => {
    const reader = scene(['Thermostat:Get']);
    expect(await reader.request('GET', '/thermostat/target')).toMatchObject({ status: 205, payload: '20.0' });
    expect(await reader.request('PUT', '/thermostat/target', '21')).toMatchObject({ status: 403 });
    expect(reader.saved).toEqual([]);
    const nobody = scene([]);
    expect(await nobody.request('GET', '/thermostat')).toEqual({ status: 403, payload: 'Access denied' });
  });

  test('notifies observers of a change after it is saved, and of nothing else', async () => {
    const { request, notified, saved } = scene(['Thermostat:Set']);
    expect(await request('PUT', '/thermostat/target', '20')).toMatchObject({ status: 204 });
    expect(notified).toEqual([]);
    expect(await request('PUT', '/thermostat/target', '21.5')).toMatchObject({ status: 204 });
    expect(notified).toEqual(['/thermostat', '/thermostat/target']);
    expect(saved).toHaveLength(2);
    expect(await request('PUT', '/thermostat/target', '99')).toMatchObject({ status: 400 });
    expect(notified).toHaveLength(2);
  });

  test('does not change when the change cannot be saved', async () => {
    const { thermostat, request, notified, disk } = scene(['Thermostat:Set']);
    disk.full = true;
    await expect(request('PUT', '/thermostat/target', '25')).rejects.toThrow('the disk is full');
    expect([thermostat.tick().target, notified]).toEqual([20, []]);
    disk.full = false;
    expect(await request('PUT', '/thermostat/target', '26')).toMatchObject({ status: 204 });
    expect(thermostat.snapshot().target).toBe(26);
  });

  test('applies all of several concurrent changes', async () => {
    const { thermostat, request } = scene(['Thermostat:Set']);
    await Promise.all([request('PUT', '/thermostat/target', '25'), request('PUT', '/thermostat/mode', 'off')]);
    expect(thermostat.snapshot()).toMatchObject({ target: 25, mode: 'off' });
  });

  test('notifies each tenth of a degree once while the room warms by itself', async () => {
    const { thermostat, request, notified, clock } = scene(['Thermostat:Set']);
    await request('POST', '/thermostat/boost', '1');
    notified.length = 0;
    clock.now = 5_000;
    expect(thermostat.tick().temperature).toBeCloseTo(30 - 10 * Math.exp(-0.5), 1);
    expect(notified).toEqual(['/thermostat', '/thermostat/temperature']);
    thermostat.tick();
    expect(notified).toHaveLength(2);
  });
});

describe('notifications', () => {
  const alarm: Notification = { category: 'CRITICAL', title: 'hot', body: '29 °C' };
  const wants = (username: string, categories: readonly string[], token?: string) =>
    user(username, {
      notificationCategories: categories,
      ...(token !== undefined && { push: { token, projectId: 'project' } }),
    });

  /**
   * A device whose provider answers each token with what `answers` says, a status or the body of a 404; 200 by default.
   */
  function scene(iam: Iam, answers: Record<string, number | string | LocalError> = {}) {
    const sent: Sent[] = [];
    const payloads: unknown[] = [];
    const listeners: DeviceEventListener[] = [];
    const device = {
      createPushNotification() {
        let token = '';
        return {
          setProjectId: () => {},
          setPayload(payload: string) {
            const document = JSON.parse(payload);
            payloads.push(document);
            token = document.message.token;
          },
          async send() {
            const answer = answers[token];
            if (answer instanceof LocalError) throw answer;
          },
          getResponseStatusCode: () => (typeof answers[token] === 'string' ? 404 : (answers[token] ?? 200)),
          getResponseBody: () => (typeof answers[token] === 'string' ? answers[token] : ''),
        } as unknown as PushNotification;
      },
      onDeviceEvent(listener: DeviceEventListener) {
        listeners.push(listener);
        return () => {};
      },
    } satisfies Pick<Device, 'createPushNotification' | 'onDeviceEvent'>;
    const notifications = new Notifications(device, iam, silentLog, (each) => sent.push(each));
    const event: DeviceEventListener = (name, reason) => {
      for (const listener of listeners) listener(name, reason);
    };
    return { notifications, sent, payloads, event };
  }

  const model = (...users: ReturnType<typeof user>[]) => iamOf({ state: stateOf(users), notificationCategories: CATEGORIES });

  test('go to users that chose the category and have a token', async () => {
    const iam = model(
      wants('a', ['CRITICAL'], 'token-a'),
      wants('b', ['INFO'], 'token-b'),
      wants('c', ['CRITICAL']),
      wants('d', [], 'token-d'),
    );
    const { notifications, sent, payloads, event } = scene(iam);
    event('ATTACHED', null);
    await notifications.send(alarm);
    expect(sent).toEqual([{ category: 'CRITICAL', username: 'a', status: 200 }]);
    expect(payloads).toEqual([
      { message: { token: 'token-a', notification: { title: 'hot', body: '29 °C' }, data: { category: 'CRITICAL' } } },
    ]);
  });

  test('a failed one stops no other; an expired token is removed from its user, but not for any 404', async () => {
    const iam = model(...['a', 'b', 'c', 'd', 'e', 'f'].map((name) => wants(name, ['CRITICAL'], `token-${name}`)));
    const gone = JSON.stringify(pushError('UNREGISTERED').body);
    const proxy = '<html>Not Found</html>';
    const { notifications, sent, event } = scene(iam, {
      'token-b': gone,
      'token-e': proxy,
      'token-c': new LocalError('STOPPED', 'stopped'),
      'token-d': 400,
    });
    event('ATTACHED', null);
    await notifications.send(alarm);
    const results = Object.fromEntries(sent.map(({ username, status, error }) => [username, status ?? error]));
    expect(results).toEqual({ a: 200, b: 404, c: 'STOPPED', d: 400, e: 404, f: 200 });
    expect(iam.users.filter(({ push }) => push === undefined).map(({ username }) => username)).toEqual(['b']);
  });

  test('wait while the device is not attached, the newest of each category', async () => {
    const { notifications, payloads, event } = scene(model(wants('a', ['CRITICAL', 'INFO'], 'token')));
    let sent = 0;
    const send = (notification: Notification) => notifications.send(notification).then(() => sent++);
    const all = [
      send({ ...alarm, title: 'first' }),
      send({ ...alarm, title: 'second' }),
      send({ ...alarm, category: 'INFO', title: 'over' }),
    ];
    await nextTask();
    expect([payloads, sent]).toEqual([[], 0]);
    event('ATTACHED', null);
    await Promise.all(all);
    expect(payloads).toMatchObject([{ message: { notification: { title: 'second' } } }, { message: { notification: { title: 'over' } } }]);
    event('DETACHED', null);
    void notifications.send(alarm);
    await nextTask();
    expect(payloads).toHaveLength(2);
  });
});
