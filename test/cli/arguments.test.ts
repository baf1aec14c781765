/** Options: which values are valid, which are refused with a message, which a subcommand shares with its parents. */
import { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import * as parse from '../../cli/frame/arguments.ts';
import { sharedOptions } from '../../cli/frame/shared-options.ts';

const refuses = (run: () => unknown): void => expect(run).toThrow(/\.$/);

describe('option values', () => {
  test.each([
    ['127.0.0.1:5592', { host: '127.0.0.1', port: 5592 }],
    ['lamp.local:1', { host: 'lamp.local', port: 1 }],
    ['[::1]:65535', { host: '::1', port: 65535 }],
    ['[fe80::1%eth0]:5592', { host: 'fe80::1%eth0', port: 5592 }],
  ])('host:port %s', (text, value) => {
    expect(parse.hostPort(text)).toEqual(value);
  });

  test.each(['', 'host', 'host:', ':5592', 'host:0', 'host:65536', '::1:5592', 'a b:1', 'host:1x', 'https://host:1'])(
    'no host:port: %j',
    (text) => {
      refuses(() => parse.hostPort(text));
    },
  );

  test.each(['0', '-1', '65536', '1.5', '', 'x', '1e3', ' 1'])('no port: %j', (text) => {
    refuses(() => parse.port(text));
  });

  test('the MTU of a link is limited to what an IP link can have', () => {
    expect([parse.linkMtu('1280'), parse.linkMtu('9000')]).toEqual([1280, 9000]);
    for (const text of ['1279', '65536', 'x', '']) refuses(() => parse.linkMtu(text));
  });

  test('a port to listen on may be 0', () => {
    expect(parse.listenPort('0')).toBe(0);
    expect(parse.port('65535')).toBe(65535);
  });

  test.each([
    ['https://station.example', 'https://station.example:4433'],
    ['https://station.example/', 'https://station.example:4433'],
    ['HTTPS://Station.example:443', 'https://station.example:443'],
    [' https://station.example:443/', 'https://station.example:443'],
    ['https://[2001:DB8::1]', 'https://[2001:db8::1]:4433'],
    ['https://station.example:0443', 'https://station.example:443'],
    ['https://STATION.example:4433', 'https://station.example:4433'],
    ['https://[::1]:4433', 'https://[::1]:4433'],
    ['station.example', 'https://station.example:4433'],
    ['station.example:443', 'https://station.example:443'],
    ['[::1]:4433', 'https://[::1]:4433'],
  ])('base station %s', (text, url) => {
    expect(parse.serverUrl(text)).toBe(url);
  });

  test.each(['', 'http://x', 'http:x', 'x/y', 'u@x', 'a b', 'https://', 'https://x/y', 'https://x?y', 'https://u@x', 'https://x#y'])(
    'no base station: %j',
    (text) => {
      refuses(() => parse.serverUrl(text));
    },
  );

  test('a fingerprint is 64 hexadecimal digits, returned in lower case', () => {
    expect(parse.fingerprint('AB'.repeat(32))).toBe('ab'.repeat(32));
    for (const text of ['', 'ab', 'g'.repeat(64), 'a'.repeat(63), 'a'.repeat(65)]) refuses(() => parse.fingerprint(text));
  });

  test('ids', () => {
    expect(parse.id('de-1_X')).toBe('de-1_X');
    for (const text of ['', 'a.b', 'a b', 'a,b', 'x'.repeat(62)]) refuses(() => parse.id(text));
  });
});

test('a subcommand takes the options of its parents that it shares; any other given one is refused', () => {
  const options = (...words: string[]): object => {
    let found = {};
    const device = new Command('device').option('--data <directory>').option('--iam <kind>', '', 'production').exitOverride();
    device.command('invite').action((_options: object, self: Command) => {
      found = sharedOptions(self, ['data']);
    });
    device.parse(words, { from: 'user' });
    return found;
  };
  expect(options('invite', '--data', 'd')).toMatchObject({ data: 'd' });
  expect(() => options('--iam', 'demo', 'invite')).toThrow('--iam has no effect on device invite: leave it out');
});
