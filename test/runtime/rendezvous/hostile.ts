/** Rounds begun by hand, like those of a client that violates the protocol. */
import { encodeRendezvousOffer, type RendezvousOffer } from '../../../protocol/control/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import type { Random } from '../../../testing/index.ts';

/** The status of a round that has begun. */
export const CREATED = 201;

/** The first offer, without candidates; tag and key are random. */
export function offerOf(random: Random, overrides: Partial<RendezvousOffer> = {}): Uint8Array {
  return encodeRendezvousOffer({ round: 1, tag: random.bytes(8), key: random.bytes(16), number: 1, candidates: [], ...overrides });
}

/** Begins a round. @returns the status of the first answer */
export function begin(session: Session, payload: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = { method: 'POST', path: '/p2p/rendezvous', contentFormat: 60, payload } as const;
    session.observe(request, ({ status }) => resolve(status), reject);
  });
}
