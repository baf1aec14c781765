/** The demo's step in which a connection finds a better path during a transfer. */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Report } from './report.ts';
import type { Stage } from './stage.ts';
import { check, sha256 } from './steps.ts';

/** Bytes of the transferred file, and ms that the change of path may take. */
const UPGRADE_SIZE = 16 << 20;
const PATH_LIMIT = 10_000;

/**
 * A transfer begins through the base station, and ends over a direct path. Loopback addresses are no candidates: both
 * processes reach each other at the address of an interface of this machine. Without one the transfer stays relayed,
 * and the step reports that.
 */
export async function upgradeStep(report: Report, { client, folder, target: { options, keyFile } }: Stage): Promise<void> {
  await report.step('from the base station to a direct path, under a transfer', async () => {
    const content = randomBytes(UPGRADE_SIZE);
    const file = { path: join(folder, 'upgrade.bin'), name: 'upgrade.bin' };
    await writeFile(file.path, content);
    const interfaces = await client.call('interfaces');
    const patience = interfaces.length === 0 ? 0 : PATH_LIMIT;
    const {
      bytes,
      sha256: got,
      first,
      last,
      change,
      why,
    } = await client.call('uploadAcrossPaths', { ...options, Rendezvous: true }, keyFile, file, patience);
    check(bytes === UPGRADE_SIZE && got === sha256(content), `SHA-256 differs: ${got} after ${bytes} bytes`);
    check(first === 'relay', `the connection began over ${first}`);
    if (change === null) {
      check(interfaces.length === 0, `no direct path within ${PATH_LIMIT / 1000} s: ${why?.code}: ${why?.text}`);
      return {
        figure: 'this machine has no interface but loopback: the transfer stayed relayed, SHA-256 equal',
        values: { direct: false },
      };
    }
    check(last.over !== 'relay', `the transfer ended over ${last.over}`);
    const relayed = (change.bytes / 1e3).toFixed(0);
    return {
      figure: `direct after ${change.ms.toFixed(0)} ms, at ${last.address}: ${relayed} kB of ${(bytes / 1e6).toFixed(1)} MB were relayed; SHA-256 equal`,
      values: { direct: true, directMs: change.ms, relayedBytes: change.bytes },
    };
  });
}
