/**
 * The alarm of `svc device` over restarts: a room in faked time, whose directory is an object, on a device that only
 * records what is sent.
 */
import { setImmediate as nextTask } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { DeviceData, DeviceState } from '../../cli/device-app/data.ts';
import { CATEGORIES } from '../../cli/device-app/notifications.ts';
import { Room } from '../../cli/device-app/room.ts';
import { Output } from '../../cli/frame/output.ts';
import type { Device, DeviceEventListener } from '../../device/index.ts';
import { silentLog } from '../../platform/environment.ts';
import { iamOf, stateOf, user } from '../device/iam/model.ts';

const iam = iamOf({
  state: stateOf([user('owner', { notificationCategories: ['CRITICAL', 'INFO'], push: { token: 't', projectId: 'p' } })]),
  notificationCategories: CATEGORIES,
});
const configuration = { tcpTunnels: [], udpTunnels: [], overTemperature: { limit: 28, category: 'CRITICAL' } } as const;

/** What is on the disk. */
let state: Partial<DeviceState>;
/** Titles of the sent notifications. */
let sent: string[];
let diskIsFull: boolean;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'], now: 0 });
  state = { Thermostat: { Target: 29, Mode: 'heat', Temperature: 29, Time: 0, BoostUntil: 0 } };
  sent = [];
  diskIsFull = false;
});
afterEach(() => {
  vi.useRealTimers();
});

/** A run of the device: starts, looks at its room once, stops. */
async function run({ attached = true } = {}): Promise<void> {
  const listeners: DeviceEventListener[] = [];
  const device = {
    addCoapResource: () => ({ observers: 0, notify: () => {}, remove: () => {} }),
    onDeviceEvent: (listener: DeviceEventListener) => listeners.push(listener),
    createPushNotification: () => ({
      setProjectId: () => {},
      setPayload: (payload: string) => sent.push(JSON.parse(payload).message.notification.title),
      send: async () => {},
      getResponseStatusCode: () => 200,
    }),
  } as unknown as Device;
  const data = {
    state: { ...state },
    update: async (changes: Partial<DeviceState>) => {
      if (diskIsFull) throw new Error('the disk is full');
      Object.assign(state, changes);
    },
  } as unknown as DeviceData;
  const nowhere = { write: () => true } as unknown as NodeJS.WriteStream;
  const output = new Output(true, { stdout: nowhere, stderr: nowhere });
  const room = new Room({ device, iam, data, configuration, log: silentLog, output });
  room.begin();
  if (attached) for (const listener of listeners) listener('ATTACHED', null);
  vi.advanceTimersByTime(1000);
  await nextTask();
  room.end();
}

const cool = (): void => {
  state.Thermostat = { Target: 20, Mode: 'heat', Temperature: 20, Time: 0, BoostUntil: 0 };
};

test('a device that starts again in a room that is still hot is silent', async () => {
  await run();
  await run();
  expect([sent, state.AlarmTold]).toEqual([['Over-temperature'], true]);
});

test('a device whose room has cooled meanwhile sends that, once', async () => {
  await run();
  cool();
  await run();
  await run();
  expect([sent, state.AlarmTold]).toEqual([['Over-temperature', 'Temperature is normal again'], false]);
});

test('an unsent alarm from before the stop is sent at the next start', async () => {
  await run({ attached: false });
  expect([sent, state.AlarmTold]).toEqual([[], undefined]);
  await run();
  expect([sent, state.AlarmTold]).toEqual([['Over-temperature'], true]);
});

test('an alarm that cannot be saved may be sent again, and stops nothing', async () => {
  diskIsFull = true;
  await run();
  await run();
  expect(sent).toEqual(['Over-temperature', 'Over-temperature']);
});
