/**
 * The day of the latest connection to each device (used.json), apart from the known devices: it changes often, and
 * its loss does no harm. It never fails a command.
 */
import { join } from 'node:path';
import { prepareDirectory, readJson, replaceJson } from '../../platform/node/index.ts';

const FILE = 'used.json';

/** Days (YYYY-MM-DD, UTC) by `product.device`; empty where the file is missing or damaged. */
export async function lastUsed(directory: string): Promise<Readonly<Record<string, string>>> {
  const content: unknown = await readJson(join(directory, FILE)).catch(() => undefined);
  if (typeof content !== 'object' || content === null || Array.isArray(content)) return {};
  return Object.fromEntries(Object.entries(content).filter(([, day]) => /^\d{4}-\d\d-\d\d$/.test(String(day))));
}

/**
 * Records a connection to the device.
 * @param ids `product.device` of all known devices: others are forgotten
 * @param now Unix ms
 */
export async function noteUse(directory: string, device: string, ids: readonly string[], now: number): Promise<void> {
  const days = await lastUsed(directory);
  const day = new Date(now).toISOString().slice(0, 10);
  if (days[device] === day) return;
  const kept = Object.entries({ ...days, [device]: day }).filter(([id]) => ids.includes(id));
  try {
    await prepareDirectory(directory);
    await replaceJson(join(directory, FILE), Object.fromEntries(kept));
  } catch {
    // The directory is not writable.
  }
}
