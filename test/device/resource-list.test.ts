/** `/.well-known/core` of a device: what it lists for which client, filtered by a query, in blocks when it is long. */
import { beforeEach, expect, test } from 'vitest';
import type { Connection } from '../../client/node.ts';
import type { Denial, Device } from '../../device/index.ts';
import { attributeOf, CORE_PATH, type CoreLink, decodeLinks } from '../../protocol/coap/index.ts';
import { ProductFixture } from '../support/fixture/products.ts';

let fixture: ProductFixture;
let device: Device;
beforeEach(async () => {
  fixture = await ProductFixture.withStation();
  ({ device } = await fixture.attached());
});

const handler = () => ({ status: 205 });

async function ask(connection: Connection, ...query: string[]): Promise<{ status: number; links: CoreLink[] }> {
  const { status, format, text } = await fixture.sim.settle(connection.get(CORE_PATH, { query }));
  expect(format).toBe(40);
  return { status, links: decodeLinks(text) };
}

const hrefs = ({ links }: { links: readonly CoreLink[] }): string[] => links.map(({ href }) => href);

test('lists paths with their methods and the attributes that the application gives', async () => {
  device.addCoapResource('PUT', '/target', handler, { type: 'thermostat.target', title: 'What it should be' });
  device.addCoapResource('GET', '/target', handler, { observable: true });
  device.addCoapResource('GET', '/rooms/{room}', handler);
  device.addCoapResource('GET', '/secret', handler, { hidden: true });
  const gone = device.addCoapResource('GET', '/gone', handler);
  gone.remove();
  const listed = await ask(await fixture.connected());
  expect(listed.status).toBe(205);
  const target = listed.links.find(({ href }) => href === '/target')!;
  expect(target.attributes).toEqual([
    ['methods', 'GET PUT'],
    ['rt', 'thermostat.target'],
    ['title', 'What it should be'],
    ['obs', null],
  ]);
  expect(listed.links.find(({ href }) => href === '/rooms/%7Broom%7D')?.attributes).toEqual([
    ['methods', 'GET'],
    ['templated', null],
  ]);
  expect(hrefs(listed)).toEqual([
    '/rooms/%7Broom%7D',
    '/target',
    ...Array.from({ length: 3 }, () => expect.stringMatching(/^\/tcp-tunnels\//)),
    ...Array.from({ length: 3 }, () => expect.stringMatching(/^\/udp-tunnels\//)),
  ]);
});

test('a resource that needs an action is listed for clients with the right to it, and listing emits no refusal', async () => {
  const denials: Denial[] = [];
  device.onDenied((denial) => denials.push(denial));
  let asked = 0;
  let allowed = false;
  device.onAuthorizationRequest(({ action, attributes }) => {
    asked++;
    return allowed && action === 'Heat:Get' && Object.keys(attributes).length === 0;
  });
  device.addCoapResource('GET', '/heat', handler, { action: 'Heat:Get' });
  device.addCoapResource('PUT', '/heat', handler, { action: 'Heat:Set' });
  device.addCoapResource('GET', '/heat/now', handler, { action: 'Heat:Get' });
  const connection = await fixture.connected();
  expect(hrefs(await ask(connection, 'href=/heat*'))).toEqual([]);
  expect(asked).toBe(2);
  allowed = true;
  const listed = await ask(connection, 'href=/heat*');
  expect(listed.links.map((link) => [link.href, attributeOf(link, 'methods')])).toEqual([
    ['/heat', 'GET'],
    ['/heat/now', 'GET'],
  ]);
  expect(denials).toEqual([]);
});

test('a list of many resources is sent in blocks', { tags: ['slow'] }, async () => {
  for (let number = 0; number < 300; number++) device.addCoapResource('GET', `/sensors/${number}`, handler, { title: `Sensor ${number}` });
  const listed = await ask(await fixture.connected(), 'href=/sensors/*');
  expect(listed.links).toHaveLength(300);
});

test('a query to a resource that takes none is refused', { tags: ['slow'] }, async () => {
  device.addCoapResource('GET', '/x', handler);
  const connection = await fixture.connected();
  for (const query of [['a=b'], { a: 'b' }])
    expect(await fixture.sim.settle(connection.get('/x', { query }))).toMatchObject({ status: 400 });
});

test.each([
  [CORE_PATH, {}, 'belong to the SDK'],
  ['/y', { type: 'Upper' }, 'the type'],
  ['/y', { type: 'a  b' }, 'the type'],
  ['/y', { title: 'two\nlines' }, 'the title'],
  ['/y', { title: '' }, 'the title'],
])('refuses %s %j', async (path, options, text) => {
  expect(() => device.addCoapResource('GET', path, handler, options)).toThrow(text);
  // Nothing is left half-made.
  if (path === '/y') device.addCoapResource('GET', path, handler);
  device.addCoapResource('GET', '/twice', handler);
  expect(() => device.addCoapResource('GET', '/twice', handler, { title: 'Twice' })).toThrow(expect.objectContaining({ code: 'IN_USE' }));
  const twice = (await ask(await fixture.connected(), 'href=/twice')).links[0];
  expect(twice?.attributes).toEqual([['methods', 'GET']]);
});
