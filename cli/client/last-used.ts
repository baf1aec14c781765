/**
 * On which day each device was last connected to (used.json), apart from what the client knows: it changes often, and what is lost of it is no loss. It never
 * fails a command.
 */
import { join } from 'node:path';
import { prepareDirectory, readJson, replaceJson } from '../../transport/node/index.ts';

const FILE = 'used.json';

/** Days (YYYY-MM-DD, UTC) by `product.device`; empty where there is no such file, or none that can be read. */
export async function lastUsed(directory: string): Promise<Readonly<Record<string, string>>> {
  const content: unknown = await readJson(join(directory, FILE)).catch(() => undefined);
  if (typeof content !== 'object' || content === null || Array.isArray(content)) return {};
  return Object.fromEntries(Object.entries(content).filter(([, day]) => /^\d{4}-\d\d-\d\d$/.test(String(day))));
}

/** Notes that the device was connected to. @param ids `product.device` of all known devices: others are forgotten @param now Unix ms */
export async function noteUse(directory: string, device: string, ids: readonly string[], now: number): Promise<void> {
  const days = await lastUsed(directory);
  const day = new Date(now).toISOString().slice(0, 10);
  if (days[device] === day) return;
  const kept = Object.entries({ ...days, [device]: day }).filter(([id]) => ids.includes(id));
  try {
    await prepareDirectory(directory);
    await replaceJson(join(directory, FILE), Object.fromEntries(kept));
  } catch {
    // A directory that takes no writes.
  }
}
