/** Bench process: a base station that knows one device. */

import { silentLog } from '../../platform/environment.ts';
import { openStore, type StationSettings, startBasestation } from '../../server/index.ts';
import { serve } from './child.ts';

interface Start {
  readonly data: string;
  readonly productId: string;
  readonly deviceId: string;
  /** Full hex fingerprint of the device's key. */
  readonly deviceFingerprint: string;
  readonly settings?: Partial<StationSettings>;
}

serve({
  async start({ data, productId, deviceId, deviceFingerprint, settings = {} }: Start) {
    const created = new Date().toISOString();
    const store = await openStore(data);
    const { organizationId } = await store.defaultOrganization({ organizationId: 'or-bench', name: null, created });
    await store.addProduct({ productId, organizationId, name: null, created });
    await store.addDevice({ productId, deviceId, name: null, fingerprint: deviceFingerprint, created });
    await store.close();
    const { port, fingerprint } = await startBasestation({ data, port: 0, log: silentLog, settings });
    return { port, fingerprint };
  },
});
