/**
 * Further connection ids of a connection (PROTOCOL.md §2, RFC 9000 §5.1): the core says which are in force; here our retired ones go back to the
 * table, the peer gets new ones up to its limit, and the tokens of the peer's are known to Reset.
 */
import type { ConnectionIds, CoreConnection } from '../../bindings/index.ts';
import { equalBytes } from '../identity/index.ts';
import { packed } from '../packed-bytes.ts';
import type { Context } from './context.ts';
import type { Slot } from './registry.ts';

/** Brings the endpoint's tables in line with what the core holds. */
export function updateIds(context: Context, slot: Slot, inForce: ConnectionIds, core: CoreConnection): void {
  const { ids, registry } = context;
  const isInForce = (id: Uint8Array): boolean => inForce.ours.some((other) => equalBytes(other, id));
  const [first, ...further] = slot.ids;
  for (const id of [first!, ...further]) if (!isInForce(id)) ids.release(id);
  slot.furtherIds = further.filter(isInForce).map(packed).join('');
  registry.remoteIds.replace(slot, inForce.theirs);
  for (let room = inForce.room; room > 0; room--) if (!supply(context, slot, core)) break;
}

/** One more id for the peer; false when there is none left or it may have no more. */
function supply({ ids, resets }: Context, slot: Slot, core: CoreConnection): boolean {
  const id = ids.allocateFurther(slot);
  if (id === null) return false;
  if (!core.issueId(id, resets.token(id))) {
    ids.release(id);
    return false;
  }
  slot.furtherIds = [slot.furtherIds, packed(id)].join('');
  return true;
}
