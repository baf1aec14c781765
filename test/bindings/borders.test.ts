/**
 * The border between JavaScript and the core: lengths at and beyond the limits, and keys wiped on the JavaScript side.
 */
import { describe, expect, test } from 'vitest';
import { Core, type CoreConnectionOptions } from '../../bindings/index.ts';
import { PARAMETERS, Pair } from './pair.ts';

const options: CoreConnectionOptions = {
  initiator: true,
  sendKey: new Uint8Array(32).fill(1),
  receiveKey: new Uint8Array(32).fill(2),
  sendMaskKey: new Uint8Array(32).fill(3),
  receiveMaskKey: new Uint8Array(32).fill(4),
  localId: new Uint8Array(8).fill(1),
  remoteId: new Uint8Array(8).fill(2),
  local: PARAMETERS,
  remote: PARAMETERS,
  skipSeed: 1,
  challengeSeed: new Uint8Array(32),
  now: 0,
};

describe('opening a connection', () => {
  test.each<[string, Partial<CoreConnectionOptions>]>([
    ['a key that is too short', { sendKey: new Uint8Array(31) }],
    ['a key that is too long', { receiveKey: new Uint8Array(33) }],
    ['an id that is too short', { localId: new Uint8Array(7) }],
    ['an id that is too long', { remoteId: new Uint8Array(9) }],
    ['a Complete that does not fit', { complete: new Uint8Array(1001) }],
  ])('refuses %s', (_, wrong) => {
    const core = Core.create();
    expect(() => core.open({ ...options, ...wrong })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    expect(core.stats().connections).toBe(0);
  });

  test('takes the largest Complete', () => {
    Core.create()
      .open({ ...options, complete: new Uint8Array(1000) })
      .free();
  });

  test('takes more streams than the core can count', () => {
    const connection = Core.create().open({ ...options, remote: { ...PARAMETERS, maxStreams: 0x1_0000 } });
    expect(connection.streams.open()).toBeGreaterThanOrEqual(0);
  });
});

test('a datagram larger than the receive slot touches no memory', () => {
  const pair = new Pair();
  const before = pair.core.buffer.slice();
  expect(pair.inject(new Uint8Array(70_000).fill(0xc0), pair.responder)).toBe(false);
  expect(Buffer.compare(pair.core.buffer, before)).toBe(0);
});

test('mask keys are wiped with their connection', () => {
  const core = Core.create();
  const [first, second] = [core.open(options), core.open(options)];
  const { maskKeys } = (first as unknown as { core: { maskKeys: Uint8Array } }).core;
  const keys = () => [...new Set(maskKeys)].sort();
  expect(keys()).toEqual([0, 3, 4]);
  first.free();
  expect(keys()).toEqual([0, 3, 4]);
  second.free();
  expect(keys()).toEqual([0]);
});
