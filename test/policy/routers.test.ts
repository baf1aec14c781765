/** PROTOCOL.md §7.1 names exactly the routes that a running base station and device register. */
import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Router } from '../../protocol/coap/index.ts';
import { iamOf } from '../device/iam/model.ts';
import { ProductFixture } from '../support/fixture/products.ts';

const iamPage = readFileSync(new URL('../../docs/iam.md', import.meta.url), 'utf8');
const page = readFileSync(new URL('../../PROTOCOL.md', import.meta.url), 'utf8');

/** Routes by router, as in the table. */
const documented = grouped(
  [...page.matchAll(/^\| (\S[^|]* → [^|]*\S) \| `([A-Z]+ \/[^`]*)` \| /gm)].map(([, router, route]) => [router, route as string]),
);

function grouped<Key>(routes: readonly (readonly [router: Key, route: string])[]): ReadonlyMap<Key, string[]> {
  const groups = new Map<Key, string[]>();
  for (const [router, route] of routes) groups.set(router, [...(groups.get(router) ?? []), route].sort());
  return groups;
}

const routesOf = (...routers: string[]) => routers.map((router) => documented.get(router)).sort();

/** Routes of each router to which `run` adds any. */
async function registered(run: () => Promise<unknown>): Promise<string[][]> {
  const on = vi.spyOn(Router.prototype, 'on');
  await run();
  return [...grouped(on.mock.calls.map(([method, path], call) => [on.mock.contexts[call], `${method} ${path}`])).values()].sort();
}

describe('PROTOCOL.md', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it('has a table of five routers', () => {
    expect([...documented.keys()].sort()).toEqual([
      'client → device',
      'client → station',
      'device → station',
      'new channel → station',
      'station → device',
    ]);
  });

  it('names the routes of a base station', async () => {
    const fixture = new ProductFixture();
    const routers = await registered(() => fixture.station());
    expect(routers).toEqual(routesOf('new channel → station', 'device → station', 'client → station'));
  });

  it('names the routes of a device, except those of access control, which docs/iam.md has', { tags: ['slow'] }, async () => {
    const fixture = await ProductFixture.withStation();
    const routers = await registered(async () => {
      const under = await fixture.device();
      under.device.setIam(iamOf());
      await fixture.start(under);
      await fixture.until(under, 'ATTACHED');
    });
    const withoutIam = routers.map((routes) => routes.filter((route) => !/^[A-Z]+ \/iam(?:\/|$)/.test(route)));
    expect(withoutIam).toEqual(routesOf('client → device', 'station → device'));
    const iam = routers.flat().filter((route) => /^[A-Z]+ \/iam(?:\/|$)/.test(route));
    expect(iam.sort()).toEqual([...iamPage.matchAll(/^\| `([A-Z]+ \/iam[^`]*)` \|/gm)].map(([, route]) => route!).sort());
  });
});
