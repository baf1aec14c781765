/**
 * Refusals of changes. Every caller of the administration (command, REST interface, dashboard) words the refusal
 * itself, or uses the message.
 */
import { LocalError } from '../../protocol/errors/index.ts';

/** Kinds of records, as used in messages. */
export type RecordKind =
  | 'organization'
  | 'product'
  | 'device'
  | 'server key'
  | 'API key'
  | 'push credential'
  | 'service'
  | 'attachment of a service'
  | 'invitation';

/**
 * - invalid: a value breaks a rule (INVALID_ARGUMENT)
 * - cleartext-url, private-address: a service may have such a URL only with `allowPrivate` (INVALID_ARGUMENT)
 * - not-found: there is no such record (NOT_FOUND); `id` is null where the caller may have named it by a secret
 * - not-empty: other records belong to it; only `force` removes them with it (INVALID_STATE)
 * - several-organizations, several-products: the caller must name one (INVALID_STATE)
 * - has-key: the device that an invitation would be for has a key (INVALID_STATE)
 * - used: the device that an invitation was for has joined (INVALID_STATE)
 * - too-many: a product has the most open invitations allowed (INVALID_STATE)
 */
export type Refusal =
  | { readonly kind: 'invalid' }
  | { readonly kind: 'cleartext-url' }
  | { readonly kind: 'private-address' }
  | { readonly kind: 'not-found'; readonly record: RecordKind; readonly id: string | null }
  | { readonly kind: 'not-empty'; readonly count: number }
  | { readonly kind: 'several-organizations' }
  | { readonly kind: 'several-products'; readonly productIds: readonly string[] }
  | { readonly kind: 'has-key' | 'used'; readonly productId: string; readonly deviceId: string }
  | { readonly kind: 'too-many' };

const codes: Readonly<Record<Refusal['kind'], string>> = {
  invalid: 'INVALID_ARGUMENT',
  'cleartext-url': 'INVALID_ARGUMENT',
  'private-address': 'INVALID_ARGUMENT',
  'not-found': 'NOT_FOUND',
  'not-empty': 'INVALID_STATE',
  'several-organizations': 'INVALID_STATE',
  'several-products': 'INVALID_STATE',
  'has-key': 'INVALID_STATE',
  used: 'INVALID_STATE',
  'too-many': 'INVALID_STATE',
};

/**
 * A refused change. The store raises LocalErrors of the same codes: INVALID_STATE for an id that is taken, NOT_FOUND
 * for a missing owner, so the code of any LocalError decides the status of an answer.
 */
export class AdministrationError extends LocalError {
  override name = 'AdministrationError';
  readonly refusal: Refusal;

  /** @param message one clause for a person, without a remedy: that depends on the caller */
  constructor(refusal: Refusal, message: string) {
    super(codes[refusal.kind], message);
    this.refusal = refusal;
  }
}

/** Refuses a value. @throws AdministrationError */
export function invalid(message: string): never {
  throw new AdministrationError({ kind: 'invalid' }, message);
}

/** Refuses unless a record existed. @param what names it in the message @throws AdministrationError */
export function expectFound(found: boolean, record: RecordKind, id: string | null, what = `${record} ${id}`): void {
  if (!found) throw new AdministrationError({ kind: 'not-found', record, id }, `there is no ${what}`);
}
