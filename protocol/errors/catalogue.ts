/**
 * The one catalogue of error codes: every `code` an error of this project can carry, with its meaning and who raises it.
 *
 * Three blocks. The specification's names (interface.md §7 and the codes listed with the reference's client and device) are given
 * exactly; where two of its surfaces call one thing by two names, both stand here and the note says which one we raise. Then those of
 * the wrappers around access control, and the few names of our own, marked `own`. The wire numbers that travel between ends are in
 * `codes.ts` and `station-codes.ts`.
 */

/** Who raises a code: the client, the device or base station SDK, or any of them. */
export type Raiser = 'client' | 'device' | 'server' | 'any';

/** What a code means. */
export interface CatalogueEntry {
  /** One clause for a person, without a full stop. */
  readonly meaning: string;
  readonly raisedBy: Raiser;
  /** True when the name is ours and in no list of the specification. */
  readonly own?: true;
}

/** Names of the specification. */
const specification = {
  OK: { meaning: 'success; never thrown, it appears as a channel result', raisedBy: 'any' },
  ABORTED: { meaning: 'the operation was given up by its owner; the client raises STOPPED instead', raisedBy: 'device' },
  ADDRESS_IN_USE: { meaning: 'the UDP port the device was told to use is taken', raisedBy: 'device' },
  ALLOCATION_ERROR: { meaning: 'no memory for the operation; OUT_OF_MEMORY is raised instead', raisedBy: 'client' },
  API_UNKNOWN_ERROR: { meaning: 'an API call failed in an unforeseen way; UNKNOWN is raised instead', raisedBy: 'client' },
  BAD_REQUEST: { meaning: 'the other end found the request malformed', raisedBy: 'client' },
  BAD_RESPONSE: { meaning: 'the answer of the other end does not have the agreed shape', raisedBy: 'any' },
  CLOSED: { meaning: 'the connection or stream is closed, or is closed for writing', raisedBy: 'any' },
  CONNECTION_REFUSED: { meaning: 'the base station does not answer on this address and port', raisedBy: 'client' },
  COULD_BLOCK: { meaning: 'a blocking call from a callback; none of our calls block, so it is never raised', raisedBy: 'client' },
  DEVICE_INTERNAL_ERROR: { meaning: 'the device has no room for another connection', raisedBy: 'client' },
  DNS: { meaning: 'the host name does not resolve to an address', raisedBy: 'any' },
  END_OF_FILE: { meaning: 'the stream has ended, no more data follows', raisedBy: 'any' },
  EOF: { meaning: 'the name END_OF_FILE has in other surfaces; END_OF_FILE is raised', raisedBy: 'any' },
  FAILED: { meaning: 'the operation was carried out and did not succeed', raisedBy: 'any' },
  FAILED_WITH_DETAIL: { meaning: 'the name of a failure that says why; ours always do, so FAILED is raised', raisedBy: 'client' },
  FORBIDDEN: { meaning: 'the other end knows the caller and does not allow this', raisedBy: 'client' },
  FUTURE_NOT_RESOLVED: { meaning: 'a future was asked for its result too early; promises replace futures here', raisedBy: 'any' },
  INVALID_ARGUMENT: { meaning: 'an argument is outside what the operation takes', raisedBy: 'any' },
  INVALID_CONNECTION: { meaning: 'the connection this object belongs to no longer exists', raisedBy: 'device' },
  INVALID_STATE: { meaning: 'the operation is not possible in the present state', raisedBy: 'any' },
  IN_USE: { meaning: 'only one listener of this kind is possible and there is one', raisedBy: 'device' },
  NONE: { meaning: 'there is nothing of the kind asked for, or that way is switched off', raisedBy: 'client' },
  NOT_ATTACHED: { meaning: 'the device is known and not attached to the base station', raisedBy: 'any' },
  NOT_CONNECTED: { meaning: 'the connection is not established yet', raisedBy: 'client' },
  NOT_FOUND: { meaning: 'the named thing does not exist', raisedBy: 'any' },
  NOT_IMPLEMENTED: { meaning: 'this build or this host cannot do it', raisedBy: 'any' },
  NO_CHANNELS: { meaning: 'no way to the device worked; the error tells why for each way', raisedBy: 'client' },
  NO_DATA: { meaning: 'the message has no payload or no content format', raisedBy: 'any' },
  OPERATION_IN_PROGRESS: { meaning: 'an operation of this kind is still running on the object', raisedBy: 'any' },
  OUT_OF_MEMORY: { meaning: 'a bounded pool is exhausted', raisedBy: 'any' },
  PARSE: { meaning: 'bytes from the network do not follow their format', raisedBy: 'any' },
  PORT_IN_USE: { meaning: 'the local port is taken', raisedBy: 'client' },
  PRIVILEGED_PORT: { meaning: 'this user may not open the local port', raisedBy: 'client' },
  STOPPED: { meaning: 'the object was stopped, or the other end reset the stream', raisedBy: 'any' },
  STRING_TOO_LONG: { meaning: 'a name or version is longer than its limit', raisedBy: 'device' },
  TIMEOUT: { meaning: 'the time allowed for the operation ran out', raisedBy: 'any' },
  TOKEN_REJECTED: { meaning: 'the base station refused the server connect token or JWT', raisedBy: 'client' },
  TOO_MANY_REQUESTS: { meaning: 'too many attempts in a short time, try again later', raisedBy: 'client' },
  TOO_MANY_WRONG_PASSWORD_ATTEMPTS: {
    meaning: 'the name TOO_MANY_REQUESTS has in another surface; TOO_MANY_REQUESTS is raised',
    raisedBy: 'client',
  },
  UNAUTHORIZED: { meaning: 'user name or password is wrong, not told apart', raisedBy: 'client' },
  UNEXPECTED_API_STATUS: { meaning: 'a status the call does not foresee; BAD_RESPONSE is raised instead', raisedBy: 'client' },
  UNKNOWN: { meaning: 'an error without a better name', raisedBy: 'any' },
  UNKNOWN_DEVICE_ID: { meaning: 'the base station does not know this device id', raisedBy: 'client' },
  UNKNOWN_PRODUCT_ID: { meaning: 'the base station does not know this product id', raisedBy: 'client' },
  UNKNOWN_SERVER_KEY: { meaning: 'the base station does not know this server key', raisedBy: 'client' },
} as const satisfies Record<string, CatalogueEntry>;

/** Names of the wrappers around a device's access control (reference §1.1, §1.3): what `IamUtil` raises. */
const iam = {
  AUTHENTICATION_ERROR: { meaning: 'pairing needs a password, and this one or its user name is wrong', raisedBy: 'client' },
  BLOCKED_BY_DEVICE_CONFIGURATION: { meaning: 'the policies or settings of the device do not let this client do that', raisedBy: 'client' },
  INITIAL_USER_ALREADY_PAIRED: { meaning: 'the user prepared for the first client has one', raisedBy: 'client' },
  INVALID_INPUT: { meaning: 'the device does not take this value', raisedBy: 'client' },
  PAIRING_MODE_DISABLED: { meaning: 'the device does not offer this way of pairing', raisedBy: 'client' },
  ROLE_DOES_NOT_EXIST: { meaning: 'the device has no role of this name', raisedBy: 'client' },
  USERNAME_EXISTS: { meaning: 'the user name belongs to somebody else, or this key belongs to another user', raisedBy: 'client' },
  USER_DOES_NOT_EXIST: { meaning: 'the device has no user of this name, or this client is no user', raisedBy: 'client' },
} as const satisfies Record<string, CatalogueEntry>;

/** Names of our own, for states the specification's systems do not have. */
const own = {
  CERTIFICATE_VALIDATION_FAILED: {
    meaning: 'the TLS certificate of the base station does not prove that it is the host of its address',
    raisedBy: 'any',
    own: true,
  },
  CORE_FAILED: {
    meaning: 'the data plane hit a bug and is dead; its connections are lost, the host makes a new one',
    raisedBy: 'any',
    own: true,
  },
  DEVICE_ID_IN_USE: { meaning: 'the device id belongs to a device with another key', raisedBy: 'device', own: true },
  FINGERPRINT_MISMATCH: { meaning: 'the other end proved another key than the expected one', raisedBy: 'any', own: true },
  FINGERPRINT_IN_USE: { meaning: 'the key belongs to a user already', raisedBy: 'client', own: true },
  IAM_NOT_SUPPORTED: { meaning: 'the device has no access control that clients can use', raisedBy: 'client', own: true },
  REPLACED: { meaning: 'the same identity attached again elsewhere and the newest wins', raisedBy: 'device', own: true },
  UNKNOWN_FINGERPRINT: { meaning: 'the base station has another key for this device, or none', raisedBy: 'device', own: true },
  WRONG_DEVICE_ID: { meaning: 'the key belongs to a device with another device id', raisedBy: 'device', own: true },
  WRONG_PRODUCT_ID: { meaning: 'the key belongs to a device of another product', raisedBy: 'device', own: true },
} as const satisfies Record<string, CatalogueEntry>;

/** Every error code with its meaning. */
export const catalogue = { ...specification, ...iam, ...own } as const satisfies Record<string, CatalogueEntry>;

/** Name of an error of this project. */
export type ErrorCode = keyof typeof catalogue;

/** True for a name that stands in the catalogue. */
export function isErrorCode(name: string): name is ErrorCode {
  return Object.hasOwn(catalogue, name);
}

/** One clause that says what a code means, for logs and exit messages; an unknown name gives the clause of UNKNOWN. */
export function errorMeaning(code: string): string {
  return (isErrorCode(code) ? catalogue[code] : catalogue.UNKNOWN).meaning;
}
