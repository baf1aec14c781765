/** How commands describe the path of a connection, from the base station to a direct path and back. */
import { expect, test } from 'vitest';
import { followWay, showWay, wayOf } from '../../cli/client/way.ts';
import { Output } from '../../cli/frame/output.ts';
import { stationLines } from '../../cli/pair.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { TextStream } from './text-stream.ts';

test('a base station that a connect did not use is checked by a command that runs as printed', () => {
  const line = (url: string, state?: string) => stationLines(null, url, state)[0];
  expect(line('https://[::1]:14433')).toMatch(/: `svc doctor --server 'https:\/\/\[::1\]:14433'` checks it$/);
  expect(line('https://home', './my state')).toMatch(/: `svc doctor --server https:\/\/home --state '\.\/my state'` checks/);
});

test('each change is a line, and an unchanged path is none', { tags: ['slow'] }, async () => {
  const fixture = await ProductFixture.withStation();
  const [phone, home] = [fixture.host('phone'), fixture.host('home')];
  const { device } = await fixture.attached({ environment: home });
  const options = { Local: false, Rendezvous: true, DeviceFingerprint: device.deviceFingerprint };
  const connection = fixture.connection(options, fixture.client(phone));
  await fixture.settle(connection.connect());
  const said: string[] = [];
  followWay(connection, (text) => said.push(text));
  expect(wayOf(connection)).toEqual({ over: 'relay', text: 'through the base station' });
  await fixture.sim.run(2_000);
  expect(said).toEqual([expect.stringMatching(/^now directly over IPv6, \[\S+\]:5593$/)]);
  expect(wayOf(connection)).toEqual({ over: 'direct', text: 'directly over IPv6' });
  fixture.sim.link(phone, home, { loss: 1 });
  await fixture.coap(connection, 'GET', '/');
  expect(said.slice(1)).toEqual(['now through the base station again']);
});

test('the path at the start is shown only to a person at a terminal', async () => {
  const fixture = await ProductFixture.withStation();
  await fixture.attached();
  const connection = await fixture.connected({ Local: false });
  const shown = (json: boolean, isTTY: boolean): string => {
    const stderr = new TextStream(isTTY);
    showWay(connection, new Output(json, { stdout: stderr, stderr }));
    return stderr.text;
  };
  expect([shown(false, true), shown(true, true), shown(false, false)]).toEqual([
    '\r\u001b[Kconnected through the base station\n\u001b7',
    '',
    '',
  ]);
});
