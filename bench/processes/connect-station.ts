/** Bench process: a base station that knows devices, with its defaults except for limits of the rate of a bench. */
import { load } from './checkout.ts';
import { serve } from './child.ts';

interface Start {
  readonly data: string;
  readonly productId: string;
  readonly devices: readonly { readonly deviceId: string; readonly fingerprint: string }[];
}

const { openStore, startBasestation } = await load<typeof import('../../server/index.ts')>('server/index.js');
const { silentLog } = await load<typeof import('../../platform/environment.ts')>('platform/environment.js');
const settings = { connectsPerDevice: 1e4, connectsPerAddress: 1e4, attachesPerAddress: 1e4, uploadsPerDevice: 1e4 };

serve({
  async start({ data, productId, devices }: Start) {
    const created = new Date().toISOString();
    const store = await openStore(data);
    const { organizationId } = await store.defaultOrganization({ organizationId: 'or-bench', name: null, created });
    await store.addProduct({ productId, organizationId, name: null, created });
    for (const { deviceId, fingerprint } of devices) await store.addDevice({ productId, deviceId, name: null, fingerprint, created });
    await store.close();
    const { port, fingerprint } = await startBasestation({ data, port: 0, log: silentLog, settings });
    return { port, fingerprint };
  },
});
