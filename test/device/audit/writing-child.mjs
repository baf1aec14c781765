/**
 * A process that writes into the audit log of a directory until it is killed:
 *
 *   node writing-child.mjs <directory> <first number>
 *
 * Five entries are under way at any time; it prints the number of each when it is acknowledged.
 */
import { writeSync } from 'node:fs';
import { AuditLog } from '../../../dist/device/audit/index.js';
import { nodeEnvironment } from '../../../dist/device/index.js';

const [directory, first] = [process.argv[2], Number(process.argv[3])];
const identity = { productId: 'pr-1', deviceId: 'de-1', fingerprint: 'ab'.repeat(32) };
const log = await AuditLog.open(directory, { identity, clock: nodeEnvironment().clock, segmentBytes: 32 * 1024, maxBytes: 128 * 1024 });
let next = first;
await Promise.all(Array.from({ length: 5 }, write));

async function write() {
  for (;;) {
    const number = next++;
    await log.append('test', { Number: number, Text: 'x'.repeat(number % 120) });
    writeSync(1, `${number}\n`);
  }
}
