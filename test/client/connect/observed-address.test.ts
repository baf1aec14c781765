/**
 * Address and Stun of a connect: which part of the base station's answer reaches the client's channel, and when the
 * client requests to be named.
 */
import { describe, expect, it } from 'vitest';
import { connectRemote } from '../../../client/connect/relay.ts';
import { type ConnectionOptions, effectiveOptions } from '../../../client/options.ts';
import { encode } from '../../../protocol/cbor/index.ts';
import { Router, Status } from '../../../protocol/coap/index.ts';
import { ClientPath, CONTENT_FORMAT_CBOR, decodeConnectRequest } from '../../../protocol/control/index.ts';
import { asSvcError } from '../../../protocol/errors/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { StationConnector } from '../../../runtime/station/index.ts';
import { openStation } from '../../runtime/session/support.ts';
import { SessionFixture } from '../../support/fixture/sessions.ts';
import { nativeSimulation } from '../../support/simulation.ts';

interface Connecting {
  readonly code: string;
  readonly channel: Session;
  /** As the base station decoded it. */
  readonly direct: boolean | undefined;
}

/**
 * Connects at a base station that knows a route and no device, and whose answer has these fields, undefined for none.
 * @returns code of the failure, the channel, and what was requested
 */
async function connected({ address, stun }: { address?: unknown; stun?: unknown }, given: ConnectionOptions = {}): Promise<Connecting> {
  let direct: boolean | undefined;
  const simulation = nativeSimulation();
  const route = { Route: new Uint8Array(8), RouteResetToken: new Uint8Array(16) };
  const payload = encode({ Status: 0, ...route, Address: address as never, Stun: stun as never });
  const router = new Router<Session>().on('POST', ClientPath.CONNECT, (request) => {
    direct = decodeConnectRequest(request.payload).direct;
    return { status: Status.CREATED, contentFormat: CONTENT_FORMAT_CBOR, payload };
  });
  const station = await openStation(simulation, 'station', '10.0.0.9', { router });
  const { host } = await new SessionFixture({ sim: simulation }).client({ machine: 'client', addresses: ['10.0.0.2/24'] });
  const connector = new StationConnector({ host, station: station.address });
  const options = effectiveOptions({ ProductId: 'pr-a', DeviceId: 'de-a', ServerConnectToken: 'token', ...given });
  const connecting = connectRemote(host, connector, options, { name: 'device', signal: new AbortController().signal }, () => {});
  const { code } = await simulation.settle(connecting.then(() => Promise.reject(new Error('it connected')), asSvcError));
  return { code, channel: [...host.sessions][0]!, direct };
}

describe('the observed address of a connect', () => {
  it('is that of the channel, even if the connect fails', async () => {
    const { code, channel } = await connected({ address: { Ip: Uint8Array.of(192, 0, 2, 7), Port: 5000 } });
    expect([code, channel.observedAddress]).toEqual(['BAD_RESPONSE', { address: '192.0.2.7', port: 5000 }]);
  });

  it('may be missing', async () => {
    const { code, channel } = await connected({});
    expect([code, channel.observedAddress]).toEqual(['BAD_RESPONSE', null]);
  });

  it.each([
    ['text', { Ip: '192.0.2.7', Port: 5000 }],
    ['17 bytes', { Ip: new Uint8Array(17), Port: 5000 }],
    ['port 0', { Ip: new Uint8Array(16), Port: 0 }],
    ['a number', 7],
  ])('that is %s makes the whole answer invalid, and the channel stays open', async (_, address) => {
    const { code, channel } = await connected({ address });
    expect([code, channel.observedAddress, channel.isOpen]).toEqual(['PARSE', null, true]);
  });
});

describe('STUN of a connect', () => {
  it('is that of the channel, and none if the answer has none', { tags: ['slow'] }, async () => {
    const { channel } = await connected({ stun: [{ Port: 4434 }, { Ip: Uint8Array.of(192, 0, 2, 8), Port: 4435 }] });
    expect(channel.stunServers).toEqual([{ port: 4434 }, { address: '192.0.2.8', port: 4435 }]);
    expect((await connected({})).channel.stunServers).toEqual([]);
  });

  it.each([
    ['three entries', [{ Port: 1 }, { Port: 2 }, { Port: 3 }]],
    ['a port of 0', [{ Port: 0 }]],
    ['an address of 3 bytes', [{ Ip: new Uint8Array(3), Port: 1 }]],
  ])('with %s makes the whole answer invalid, and the channel stays open', async (_, stun) => {
    const { code, channel } = await connected({ stun });
    expect([code, channel.stunServers, channel.isOpen]).toEqual(['PARSE', [], true]);
  });
});

describe('a client lets the base station name its address to the device', () => {
  it('when a rendezvous may follow, and otherwise not', async () => {
    expect((await connected({}, { Rendezvous: true })).direct).toBe(true);
    expect((await connected({}, { Rendezvous: false })).direct).toBeUndefined();
    expect((await connected({})).direct).toBe(true);
  });
});
