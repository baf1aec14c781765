/**
 * Limits of the core's keys, which no test can reach packet by packet: the counters are set from outside, then one more
 * packet follows. And the next key is wiped.
 */
import { describe, expect, it } from 'vitest';
import { TransportError } from '../../bindings/index.ts';
import { testCore } from './module.ts';

describe('a sending key', () => {
  /** Whether the next key replaces it after it has sealed this number of packets. */
  const isReplacedAfter = (packets: bigint) => {
    const { call } = testCore();
    const connection = call.blankConnection!();
    const before = call.sendPhase!(connection);
    call.setPhase!(connection, packets);
    call.maybeUpdateSendKey!(connection, 60_000);
    return call.sendPhase!(connection) !== before;
  };

  it('is used for 2^28 packets', () => {
    expect([2n ** 28n - 1n, 2n ** 28n].map(isReplacedAfter)).toEqual([false, true]);
  });
});

describe('the next receiving key', () => {
  it('is wiped when the packet that needed it was forged', () => {
    const { call, memory, value } = testCore();
    expect(call.dropsNextPhase!(call.blankConnection!())).toBe(1);
    const at = value('NEXT_KEY');
    expect(memory.slice(at, at + 32)).toEqual(new Uint8Array(32));
  });
});

describe('packets that do not open', () => {
  it('have no effect up to 2^36 of them, then close with AEAD_LIMIT_REACHED (RFC 9001 §6.6)', () => {
    const closes = (failures: bigint) => {
      const core = testCore();
      return core.wide.closesAfter(core.call.blankConnection!(), failures);
    };
    expect([1n, 2n ** 36n - 1n, 2n ** 36n].map(closes)).toEqual([0n, 0n, BigInt(TransportError.AEAD_LIMIT_REACHED)]);
  });
});
