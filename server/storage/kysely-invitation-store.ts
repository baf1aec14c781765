/** {@link InvitationStore} over Kysely. */
import type { Kysely, Selectable, Transaction } from 'kysely';
import { adding, removed, type StoreDialect } from './dialect.ts';
import type { Invitation, InvitationStore, NewInvitation, Redemption, TimeShift } from './invitation-store.ts';
import type { Tables } from './schema.ts';

/** Rolls the transaction back. */
class Conflict extends Error {}

export class KyselyInvitationStore implements InvitationStore {
  readonly #db: Kysely<Tables>;
  readonly #dialect: StoreDialect;

  constructor(db: Kysely<Tables>, dialect: StoreDialect) {
    this.#db = db;
    this.#dialect = dialect;
  }

  async all(): Promise<Invitation[]> {
    const query = this.#db.selectFrom('invitations').selectAll().orderBy('created').orderBy('tokenHash');
    return (await query.execute()).map(invitationOf);
  }

  async find(tokenHash: string): Promise<Invitation | null> {
    const row = await this.#db.selectFrom('invitations').selectAll().where('tokenHash', '=', tokenHash).executeTakeFirst();
    return row ? invitationOf(row) : null;
  }

  add(invitation: NewInvitation, limit: number): Promise<boolean> {
    const { productId, created } = invitation;
    return this.#db.transaction().execute(async (transaction) => {
      const open = await transaction
        .selectFrom('invitations')
        .select('tokenHash')
        .where('productId', '=', productId)
        .where('usedTime', 'is', null)
        .where('revoked', '=', 0)
        .where('expires', '>', created)
        .limit(limit)
        .execute();
      if (open.length === limit) return false;
      const row = { ...invitation, revoked: 0, usedDeviceId: null, usedFingerprint: null, usedAddress: null, usedTime: null };
      const insert = () => transaction.insertInto('invitations').values(row).execute();
      await adding(this.#dialect, 'the invitation', insert, `product ${productId}`);
      return true;
    });
  }

  async redeem(redemption: Redemption): Promise<'joined' | 'taken' | 'closed'> {
    try {
      return await this.#db.transaction().execute(async (transaction) => {
        const invitation = await claim(transaction, redemption);
        if (invitation === undefined) return 'closed';
        await this.#bind(transaction, invitation, redemption);
        return 'joined';
      });
    } catch (error) {
      if (error instanceof Conflict) return 'taken';
      throw error;
    }
  }

  async revoke(tokenHash: string): Promise<boolean> {
    const query = this.#db.updateTable('invitations').set({ revoked: 1 }).where('tokenHash', '=', tokenHash).where('usedTime', 'is', null);
    return (await query.executeTakeFirst()).numUpdatedRows > 0n;
  }

  shift({ from, to, by }: TimeShift): Promise<void> {
    const later = (time: string): string => new Date(Date.parse(time) + by).toISOString();
    return this.#db.transaction().execute(async (transaction) => {
      const rows = await transaction
        .selectFrom('invitations')
        .selectAll()
        .where('created', '>=', from)
        .where('created', '<=', to)
        .execute();
      for (const { tokenHash, created, expires, usedTime } of rows)
        await transaction
          .updateTable('invitations')
          .set({ created: later(created), expires: later(expires), usedTime: usedTime && later(usedTime) })
          .where('tokenHash', '=', tokenHash)
          .execute();
    });
  }

  async forget(now: string, usedBefore: string): Promise<void> {
    await removed(this.#db.deleteFrom('invitations').where('usedTime', 'is', null).where('expires', '<=', now));
    await removed(this.#db.deleteFrom('invitations').where('usedTime', '<', usedBefore));
  }

  /** Gives the device the key. @throws Conflict */
  async #bind(transaction: Transaction<Tables>, { productId, deviceId: named }: Claim, { deviceId, fingerprint, time }: Redemption) {
    const device = await transaction
      .selectFrom('devices')
      .select('fingerprint')
      .where((is) => is.and({ productId, deviceId }))
      .executeTakeFirst();
    if (device === undefined) {
      const row = { productId, deviceId, name: null, fingerprint, created: time, tokensDigest: null };
      const insert = transaction.insertInto('devices').values(row);
      await insert.execute().catch((error: unknown) => {
        throw this.#dialect.brokenConstraint(error) === 'unique' ? new Conflict() : error;
      });
      return;
    }
    if (device.fingerprint === fingerprint) return;
    // An operator who added a device without a key, and invites it by name, means this one.
    if (named === null) throw new Conflict();
    const update = transaction.updateTable('devices').set({ fingerprint }).where('fingerprint', 'is', null);
    const { numUpdatedRows } = await update.where((is) => is.and({ productId, deviceId })).executeTakeFirst();
    if (numUpdatedRows === 0n) throw new Conflict();
  }
}

type Claim = Pick<Invitation, 'productId' | 'deviceId'>;

/** Marks it as used: of several at a time one succeeds, as the row is locked until the end of the transaction. */
async function claim(transaction: Transaction<Tables>, redemption: Redemption): Promise<Claim | undefined> {
  const { tokenHash, deviceId, fingerprint, address, time } = redemption;
  const { numUpdatedRows } = await transaction
    .updateTable('invitations')
    .set({ usedDeviceId: deviceId, usedFingerprint: fingerprint, usedAddress: address, usedTime: time })
    .where('tokenHash', '=', tokenHash)
    .where('usedTime', 'is', null)
    .where('revoked', '=', 0)
    .where('expires', '>', time)
    .executeTakeFirst();
  if (numUpdatedRows === 0n) return undefined;
  return transaction.selectFrom('invitations').select(['productId', 'deviceId']).where('tokenHash', '=', tokenHash).executeTakeFirst();
}

function invitationOf(row: Selectable<Tables['invitations']>): Invitation {
  const { usedDeviceId, usedFingerprint, usedAddress, usedTime, revoked, ...rest } = row;
  const isUsed = usedDeviceId !== null && usedFingerprint !== null && usedAddress !== null && usedTime !== null;
  const use = isUsed ? { deviceId: usedDeviceId, fingerprint: usedFingerprint, address: usedAddress, time: usedTime } : null;
  return { ...rest, revoked: revoked !== 0, use };
}
