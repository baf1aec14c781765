/**
 * The server connect tokens of devices, as queries for {@link KyselyStore}. Replacing a list writes only the
 * differences.
 */
import type { Kysely } from 'kysely';
import { LocalError } from '../../protocol/errors/index.ts';
import type { Tables } from './schema.ts';
import type { Device, TokenList } from './store.ts';

type DeviceKey = Pick<Device, 'productId' | 'deviceId'>;

/** Rows of one statement: databases limit its parameters. */
const CHUNK = 1_000;

/** @throws LocalError NOT_FOUND without the device */
export async function replaceTokens(db: Kysely<Tables>, device: DeviceKey, { hashes, digest }: TokenList): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    const update = transaction.updateTable('devices').set({ tokensDigest: digest });
    const { numUpdatedRows } = await update.where((is) => is.and({ ...device })).executeTakeFirst();
    if (numUpdatedRows === 0n) throw new LocalError('NOT_FOUND', `there is no device ${device.deviceId} of product ${device.productId}`);
    const rows = await transaction
      .selectFrom('deviceTokens')
      .select('hash')
      .where((is) => is.and({ ...device }))
      .execute();
    const [before, after] = [new Set(rows.map(({ hash }) => hash)), new Set(hashes)];
    for (const gone of chunks([...before].filter((hash) => !after.has(hash)))) {
      await transaction
        .deleteFrom('deviceTokens')
        .where((is) => is.and({ ...device }))
        .where('hash', 'in', gone)
        .execute();
    }
    for (const added of chunks([...after].filter((hash) => !before.has(hash)))) {
      const values = added.map((hash) => ({ ...device, hash }));
      await transaction.insertInto('deviceTokens').values(values).execute();
    }
  });
}

/** Returns null before the first list, or without the device. */
export async function tokensDigest(db: Kysely<Tables>, device: DeviceKey): Promise<string | null> {
  const query = db
    .selectFrom('devices')
    .select('tokensDigest')
    .where((is) => is.and({ ...device }));
  return (await query.executeTakeFirst())?.tokensDigest ?? null;
}

/** Looks a token up by the primary key: the device's other tokens are not read. */
export async function hasToken(db: Kysely<Tables>, device: DeviceKey, hash: string): Promise<boolean> {
  const query = db
    .selectFrom('deviceTokens')
    .select('hash')
    .where((is) => is.and({ ...device, hash }));
  return (await query.executeTakeFirst()) !== undefined;
}

function chunks(all: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(all.length / CHUNK) }, (_, index) => all.slice(index * CHUNK, (index + 1) * CHUNK));
}
