/** The demo's step that changes the client's uplink during a transfer: one address disappears, another one appears. */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Report } from './report.ts';
import type { Stage } from './stage.ts';
import { check, ownAddress, sha256 } from './steps.ts';

const SIZE = 8 << 20;
/** Longest pause of the transfer, ms. */
const PAUSE_LIMIT = 5_000;
/** On Linux every address of 127.0.0.0/8 belongs to this host, and reaches its other addresses. */
const SECOND = '127.0.0.2';

/**
 * The first uplink is an interface of this machine, the second a loopback address. Without both the step reports that.
 */
export async function uplinkStep(report: Report, { client, folder, target: { options, keyFile } }: Stage): Promise<void> {
  await report.step('the client changes its uplink under a transfer', async () => {
    const first = ownAddress();
    if (first === null || process.platform !== 'linux')
      return { figure: 'not shown: this machine has no second address to change to', values: { shown: false } };
    const content = randomBytes(SIZE);
    const file = { path: join(folder, 'uplink.bin'), name: 'uplink.bin' };
    await writeFile(file.path, content);
    const { bytes, sha256: got, pause, changes } = await client.call('uploadAcrossUplinks', options, keyFile, file, [first, SECOND]);
    check(bytes === SIZE && got === sha256(content), `SHA-256 differs: ${got} after ${bytes} bytes`);
    check(changes > 0, 'the connection did not notice');
    check(pause <= PAUSE_LIMIT, `the transfer paused for ${pause.toFixed(0)} ms`);
    return { figure: `${first} → ${SECOND}: a pause of ${(pause / 1e3).toFixed(2)} s, SHA-256 equal`, values: { pauseMs: pause } };
  });
}
