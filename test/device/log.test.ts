/** What a device logs: levels, the callback, lines on standard output; each device separately. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { DeviceConnection } from '../../device/connections.ts';
import { Device, type DeviceLogMessage, LogSeverity, logSeverityAsString } from '../../device/index.ts';
import { DeviceLog, stdOutCallback } from '../../device/log.ts';
import { silentLog } from '../../platform/environment.ts';
import { nodeEnvironment } from '../../platform/node/index.ts';
import { ProductFixture } from '../support/fixture/products.ts';

const clock = { schedule: () => () => {} };

/** A log with all that arrived at it and at its callback. */
function logOfTests() {
  const lines: string[] = [];
  const messages: DeviceLogMessage[] = [];
  const at = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  const under = { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug'), trace: at('trace') };
  const log = new DeviceLog(under, clock);
  const all = () => {
    for (const level of ['error', 'warn', 'info', 'debug', 'trace'] as const) log.log[level](`of ${level}`, { level });
  };
  return { log, lines, messages, all };
}

const client = { clientFingerprint: '', isLocal: false, isPasswordAuthenticated: false, boundUsername: null };
const aConnection: DeviceConnection = Object.create(DeviceConnection.prototype, Object.getOwnPropertyDescriptors(client));

describe('the level', () => {
  test('is not set at first: the log gets everything, the callback info and above', () => {
    const { log, lines, messages, all } = logOfTests();
    log.setCallback((message) => messages.push(message));
    all();
    expect(lines).toHaveLength(5);
    expect(messages).toEqual([
      { severity: LogSeverity.ERROR, message: 'of error', fields: { level: 'error' } },
      { severity: LogSeverity.WARN, message: 'of warn', fields: { level: 'warn' } },
      { severity: LogSeverity.INFO, message: 'of info', fields: { level: 'info' } },
    ]);
  });

  test.each([
    ['error', ['error']],
    ['warn', ['error', 'warn']],
    ['info', ['error', 'warn', 'info']],
    ['trace', ['error', 'warn', 'info', 'debug', 'trace']],
  ])('%s applies to log and callback', (level, expected) => {
    const { log, lines, messages, all } = logOfTests();
    log.setCallback((message) => messages.push(message));
    log.setLevel(level);
    all();
    expect(lines).toEqual(expected.map((name) => `${name} of ${name}`));
    expect(messages.map(({ message }) => message)).toEqual(expected.map((name) => `of ${name}`));
  });

  test.each(['debug', 'INFO', 'fatal', '', 'toString'])('%j does not exist', (level) => {
    expect(() => new Device().setLogLevel(level)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  test('has a name', () => {
    expect(Object.values(LogSeverity).map(logSeverityAsString)).toEqual(['fatal', 'error', 'warn', 'info', 'trace']);
    for (const none of [0, 3, 32, Number.NaN])
      expect(() => logSeverityAsString(none)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });
});

describe('the callback', () => {
  afterEach(() => vi.restoreAllMocks());

  test('may fail: the log records it, and the message still arrives', () => {
    const { log, lines } = logOfTests();
    log.setCallback(() => {
      throw new Error('full');
    });
    log.log.warn('once');
    expect(lines).toEqual(['warn once', 'error the log callback failed']);
  });

  test('gets messages of its own device only, until it is removed', { tags: ['slow'] }, async () => {
    const fixture = await ProductFixture.withStation();
    const [one, other] = [await fixture.device(), await fixture.device({ deviceId: 'de-other' })];
    const messages: DeviceLogMessage[] = [];
    one.device.setLogCallback((message) => messages.push(message));
    one.device.setLogLevel('error');
    for (const { device } of [one, other]) {
      device.onDeviceEvent(() => {
        throw new Error('of the application');
      });
    }
    await fixture.start(one);
    await fixture.start(other);
    await fixture.until(one, 'ATTACHED');
    await fixture.until(other, 'ATTACHED');
    expect(messages.map(({ severity, message }) => `${logSeverityAsString(severity)} ${message}`)).toEqual([
      'error listener of deviceEvent threw',
    ]);
    one.device.setLogCallback(null);
    await fixture.settle(one.device.close());
    expect(messages).toHaveLength(1);
  });

  test('gets nothing less severe than its device’s level', async () => {
    const fixture = new ProductFixture();
    const { device } = await fixture.device();
    const messages: string[] = [];
    device.setLogCallback(({ severity, message }) => messages.push(`${logSeverityAsString(severity)} ${message}`));
    device.onAuthorizationRequest(() => new Promise(() => {}));
    for (const level of ['warn', 'error', 'trace']) {
      device.setLogLevel(level);
      expect(await fixture.settle(device.authorize(aConnection, 'Test:Do'))).toBe(false);
      // A warning that clients can cause is logged once a minute.
      await fixture.sim.run(60_000);
    }
    const late = 'warn the authorization listener returned no verdict in time: denied';
    expect(messages).toEqual([late, late]);
  });

  test('for standard output writes lines that a program can parse', () => {
    const lines: string[] = [];
    const log = new DeviceLog(silentLog, clock);
    log.setCallback(stdOutCallback((line) => lines.push(line)));
    log.log.info('attached', { server: 'a b' });
    log.log.debug('unheard');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z info attached server="a b"\n$/);
  });

  test('for standard output is set by one call', async () => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    const device = new Device({ environment: nodeEnvironment() });
    device.setLogStdOutCallback();
    device.onPasswordAuthenticationRequest(() => {});
    device.onAuthorizationRequest(() => {
      throw new Error('no');
    });
    expect(await device.authorize(aConnection, 'Test:Do')).toBe(false);
    expect(write.mock.calls.map(([line]) => line)).toEqual([
      expect.stringMatching(/error the authorization listener failed: denied action=Test:Do error="Error: no"\n$/),
    ]);
  });
});
