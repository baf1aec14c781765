/** The address that the base station says it sees: what of its answer reaches the client's channel. */
import { describe, expect, it } from 'vitest';
import { connectRemote } from '../../../client/connect/relay.ts';
import { effectiveOptions } from '../../../client/options.ts';
import { encode } from '../../../protocol/cbor/index.ts';
import { Router, Status } from '../../../protocol/coap/index.ts';
import { ClientPath, CONTENT_FORMAT_CBOR } from '../../../protocol/control/index.ts';
import { asSvcError } from '../../../protocol/errors/index.ts';
import type { Session } from '../../../transport/session/index.ts';
import { StationConnector } from '../../../transport/station/index.ts';
import { SessionFixture } from '../../support/fixture/sessions.ts';
import { nativeSimulation } from '../../support/simulation.ts';
import { openStation } from '../../transport/session/support.ts';

/** Asks a base station that knows a route and no device, and whose answer has this Address. @returns code of the failure, and the channel */
async function connected(address: unknown): Promise<{ code: string; channel: Session }> {
  const simulation = nativeSimulation();
  const route = { Route: new Uint8Array(8), RouteResetToken: new Uint8Array(16) };
  const payload = encode({ Status: 0, ...route, ...(address === undefined ? {} : { Address: address as never }) });
  const router = new Router<Session>().on('POST', ClientPath.CONNECT, () => ({
    status: Status.CREATED,
    contentFormat: CONTENT_FORMAT_CBOR,
    payload,
  }));
  const station = await openStation(simulation, 'station', '10.0.0.9', { router });
  const { host } = await new SessionFixture({ sim: simulation }).client({ machine: 'client', addresses: ['10.0.0.2/24'] });
  const connector = new StationConnector({ host, station: station.address });
  const options = effectiveOptions({ ProductId: 'pr-a', DeviceId: 'de-a', ServerConnectToken: 'token' });
  const connecting = connectRemote(host, connector, options, { name: 'device', signal: new AbortController().signal });
  const { code } = await simulation.settle(connecting.then(() => Promise.reject(new Error('it connected')), asSvcError));
  return { code, channel: [...host.sessions][0]! };
}

describe('the observed address of a connect', () => {
  it('is that of the channel, whatever becomes of the connect', async () => {
    const { code, channel } = await connected({ Ip: Uint8Array.of(192, 0, 2, 7), Port: 5000 });
    expect([code, channel.observedAddress]).toEqual(['BAD_RESPONSE', { address: '192.0.2.7', port: 5000 }]);
  });

  it('may be left out', async () => {
    const { code, channel } = await connected(undefined);
    expect([code, channel.observedAddress]).toEqual(['BAD_RESPONSE', null]);
  });

  it.each([
    ['text', { Ip: '192.0.2.7', Port: 5000 }],
    ['17 bytes', { Ip: new Uint8Array(17), Port: 5000 }],
    ['port 0', { Ip: new Uint8Array(16), Port: 0 }],
    ['a number', 7],
  ])('that is %s is refused with the whole answer, and the channel lives on', async (_, address) => {
    const { code, channel } = await connected(address);
    expect([code, channel.observedAddress, channel.isOpen]).toEqual(['PARSE', null, true]);
  });
});
