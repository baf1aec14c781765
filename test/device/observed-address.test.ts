/** Address and Stun of an attach: which part of the base station's answer reaches the device's channel. */
import { describe, expect, it } from 'vitest';
import { Attacher } from '../../device/attacher.ts';
import type { DeviceEvent } from '../../device/events.ts';
import { ServerConnectTokens } from '../../device/tokens.ts';
import { encode } from '../../protocol/cbor/index.ts';
import { Router, Status } from '../../protocol/coap/index.ts';
import { CONTENT_FORMAT_CBOR, DevicePath } from '../../protocol/control/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import { openStation } from '../runtime/session/support.ts';
import { SessionFixture } from '../support/fixture/sessions.ts';
import { nativeSimulation } from '../support/simulation.ts';

/**
 * A device at a base station whose answer to the attach has these fields.
 * @returns its session after ten seconds, and its events
 */
async function attached(address: unknown, stun?: unknown) {
  const simulation = nativeSimulation();
  const payload = encode({ Status: 0, Address: address as never, Stun: stun as never });
  const router = new Router<Session>()
    .on('POST', DevicePath.ATTACH, () => ({ status: Status.CREATED, contentFormat: CONTENT_FORMAT_CBOR, payload }))
    .on('PUT', DevicePath.SCT, () => ({ status: Status.CREATED }));
  const station = await openStation(simulation, 'station', '10.0.0.9', { router });
  const { environment, host } = await new SessionFixture({ sim: simulation }).client({ machine: 'device', addresses: ['10.0.0.1/24'] });
  const events: DeviceEvent[] = [];
  const seen: unknown[] = [];
  const attacher = new Attacher({
    environment,
    host,
    station: station.address,
    tokens: new ServerConnectTokens(),
    names: { productId: 'pr-a', deviceId: 'de-a', appName: null, appVersion: null },
    onChannel: () => {},
    onEvent: (event) => {
      events.push(event);
      seen.push([...host.sessions].map(({ observedAddress }) => observedAddress));
    },
  });
  attacher.start();
  await simulation.run(10_000);
  return { events, seen, sessions: [...host.sessions], errors: host.stats().failures };
}

describe('the observed address of an attach', () => {
  it.each([
    [
      { Ip: Uint8Array.of(192, 0, 2, 7), Port: 5000 },
      { address: '192.0.2.7', port: 5000 },
    ],
    [
      { Ip: new Uint8Array(16).fill(0x20), Port: 1 },
      { address: '2020:2020:2020:2020:2020:2020:2020:2020', port: 1 },
    ],
  ])('%j is available once the device is attached', async (address, observed) => {
    const { events, seen } = await attached(address);
    expect([events, seen]).toEqual([['ATTACHED'], [[observed]]]);
  });

  it('may be missing', async () => {
    const { events, sessions } = await attached(undefined);
    expect([events, sessions.map(({ observedAddress }) => observedAddress)]).toEqual([['ATTACHED'], [null]]);
  });

  it.each([
    ['text', { Ip: '192.0.2.7', Port: 5000 }],
    ['5 bytes', { Ip: new Uint8Array(5), Port: 5000 }],
    ['port 0', { Ip: new Uint8Array(4), Port: 0 }],
    ['port 65536', { Ip: new Uint8Array(4), Port: 65_536 }],
    ['an array', [1, 2]],
    ['no port', { Ip: new Uint8Array(4) }],
  ])('that is %s makes the whole answer invalid', async (_, address) => {
    const { events, sessions, errors } = await attached(address);
    expect([events, sessions.some(({ observedAddress }) => observedAddress !== null), errors]).toEqual([[], false, 0]);
  });
});

describe('STUN of an attach', () => {
  it('has the order of the answer', async () => {
    const { sessions } = await attached(undefined, [{ Port: 4434 }, { Ip: Uint8Array.of(192, 0, 2, 8), Port: 4435 }]);
    expect(sessions.map(({ stunServers }) => stunServers)).toEqual([[{ port: 4434 }, { address: '192.0.2.8', port: 4435 }]]);
  });

  it('may be missing', async () => {
    const { events, sessions } = await attached(undefined);
    expect([events, sessions.map(({ stunServers }) => stunServers)]).toEqual([['ATTACHED'], [[]]]);
  });

  it.each([
    ['three entries', [{ Port: 1 }, { Port: 2 }, { Port: 3 }]],
    ['no port', [{ Ip: new Uint8Array(4) }]],
    ['text for an address', [{ Ip: '192.0.2.8', Port: 1 }]],
  ])('with %s makes the whole answer invalid', async (_, stun) => {
    const { events, errors } = await attached(undefined, stun);
    expect([events, errors]).toEqual([[], 0]);
  });
});
