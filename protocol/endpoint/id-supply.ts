/**
 * Further connection ids of a connection (PROTOCOL.md §2, RFC 9000 §5.1). The core reports which are in force; this
 * file returns our retired ones to the table, gives the peer new ones up to its limit, and keeps the tokens of the
 * peer's for Reset.
 */
import type { ConnectionIds, CoreConnection } from '../../bindings/index.ts';
import { equalBytes } from '../identity/index.ts';
import { packed } from '../packed-bytes.ts';
import type { Context } from './context.ts';
import type { Slot } from './registry.ts';

/** Updates the endpoint's tables to what the core holds. */
export function updateIds(context: Context, slot: Slot, inForce: ConnectionIds, core: CoreConnection): void {
  const { ids, registry } = context;
  const isInForce = (id: Uint8Array): boolean => inForce.ours.some((other) => equalBytes(other, id));
  const [first, ...further] = slot.ids;
  for (const id of [first!, ...further]) if (!isInForce(id)) ids.release(id);
  slot.furtherIds = further.filter(isInForce).map(packed).join('');
  registry.remoteIds.replace(slot, inForce.theirs);
  for (let room = inForce.room; room > 0; room--) if (!supply(context, slot, core)) break;
}

/** Supplies one more id to the peer; false when there is none left or it may have no further one. */
function supply({ ids, resets }: Context, slot: Slot, core: CoreConnection): boolean {
  const id = ids.allocateFurther(slot);
  if (id === null) return false;
  if (!core.paths.issueId(id, resets.token(id))) {
    ids.release(id);
    return false;
  }
  slot.furtherIds = [slot.furtherIds, packed(id)].join('');
  return true;
}
