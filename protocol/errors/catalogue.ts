/**
 * The one catalogue of error codes: every `code` that an error of this project can carry, its meaning, and which side
 * raises it.
 *
 * It has three blocks. The first has the specification's names (test/conformance/specification.json) exactly as given;
 * where two of its surfaces use two names for one thing, both are here and the note says which one is raised. The
 * second has the names of the wrappers around access control, the third the few names of our own, marked `own`. The
 * numbers on the wire are in `codes.ts` and `station-codes.ts`.
 */

/** The side that raises a code: the client, device or base station SDK, or any of them. */
export type Raiser = 'client' | 'device' | 'server' | 'any';

/** The meaning of a code. */
export interface CatalogueEntry {
  /** One clause for readers, without a full stop. */
  readonly meaning: string;
  readonly raisedBy: Raiser;
  /** True when the name is our own and in no list of the specification. */
  readonly own?: true;
}

/** Names of the specification. */
const specification = {
  OK: { meaning: 'success; never thrown, appears only as the result of a channel', raisedBy: 'any' },
  ABORTED: { meaning: 'the caller aborted the operation; the client raises STOPPED instead', raisedBy: 'device' },
  ADDRESS_IN_USE: { meaning: 'the UDP port configured for the device is already in use', raisedBy: 'device' },
  ALLOCATION_ERROR: { meaning: 'there is no memory for the operation; OUT_OF_MEMORY is raised instead', raisedBy: 'client' },
  API_UNKNOWN_ERROR: { meaning: 'an API call failed unexpectedly; UNKNOWN is raised instead', raisedBy: 'client' },
  BAD_REQUEST: { meaning: 'the peer rejected the request as malformed', raisedBy: 'client' },
  BAD_RESPONSE: { meaning: 'the response of the peer does not have the expected form', raisedBy: 'any' },
  CLOSED: { meaning: 'the connection or stream is closed, or is closed for writing', raisedBy: 'any' },
  CONNECTION_REFUSED: { meaning: 'the base station does not answer on this address and port', raisedBy: 'client' },
  COULD_BLOCK: { meaning: 'a blocking call was made from a callback; never raised, as no call blocks', raisedBy: 'client' },
  DEVICE_INTERNAL_ERROR: { meaning: 'the device has reached its limit of connections', raisedBy: 'client' },
  DNS: { meaning: 'the host name does not resolve to an address', raisedBy: 'any' },
  END_OF_FILE: { meaning: 'the stream has ended and no further data follows', raisedBy: 'any' },
  EOF: { meaning: 'another name of END_OF_FILE, which is raised instead', raisedBy: 'any' },
  FAILED: { meaning: 'the operation was attempted and failed', raisedBy: 'any' },
  FAILED_WITH_DETAIL: { meaning: 'a failure with a reason; FAILED is raised instead and always gives its reason', raisedBy: 'client' },
  FORBIDDEN: { meaning: 'the peer knows the caller and does not allow this', raisedBy: 'client' },
  FUTURE_NOT_RESOLVED: {
    meaning: 'the result of a future was requested too early; never raised, as the API uses promises',
    raisedBy: 'any',
  },
  INVALID_ARGUMENT: { meaning: 'an argument is not valid for the operation', raisedBy: 'any' },
  INVALID_CONNECTION: { meaning: 'the connection this object belongs to no longer exists', raisedBy: 'device' },
  INVALID_STATE: { meaning: 'the operation is not possible in the current state', raisedBy: 'any' },
  IN_USE: { meaning: 'an object of this kind or name already exists, or the directory is in use', raisedBy: 'device' },
  NONE: { meaning: 'nothing of the requested kind exists, or that way is disabled', raisedBy: 'client' },
  NOT_ATTACHED: { meaning: 'the device is known but not attached to the base station', raisedBy: 'any' },
  NOT_CONNECTED: { meaning: 'the connection is not established yet', raisedBy: 'client' },
  NOT_FOUND: { meaning: 'the named thing does not exist', raisedBy: 'any' },
  NOT_IMPLEMENTED: { meaning: 'this build or platform does not support the operation', raisedBy: 'any' },
  NO_CHANNELS: { meaning: 'no way to the device worked; the error gives the reason for each way', raisedBy: 'client' },
  NO_DATA: { meaning: 'the message has no payload or no content format', raisedBy: 'any' },
  OPERATION_IN_PROGRESS: { meaning: 'an operation of this kind is still running on the object', raisedBy: 'any' },
  OUT_OF_MEMORY: { meaning: 'a bounded pool is exhausted', raisedBy: 'any' },
  PARSE: { meaning: 'data from the network or from a file is malformed', raisedBy: 'any' },
  PORT_IN_USE: { meaning: 'the local port is already in use', raisedBy: 'client' },
  PRIVILEGED_PORT: { meaning: 'this account has no permission to open the local port', raisedBy: 'client' },
  STOPPED: { meaning: 'the object was stopped, or the peer reset the stream', raisedBy: 'any' },
  STRING_TOO_LONG: { meaning: 'a name or version is longer than its limit', raisedBy: 'device' },
  TIMEOUT: { meaning: 'the operation did not finish in the time allowed', raisedBy: 'any' },
  TOKEN_REJECTED: { meaning: 'the base station refused the server connect token or JWT', raisedBy: 'client' },
  TOO_MANY_REQUESTS: { meaning: 'there were too many attempts in a short time; try again later', raisedBy: 'client' },
  TOO_MANY_WRONG_PASSWORD_ATTEMPTS: {
    meaning: 'another name of TOO_MANY_REQUESTS, which is raised instead',
    raisedBy: 'client',
  },
  UNAUTHORIZED: { meaning: 'the user name or the password is wrong; the error does not say which', raisedBy: 'client' },
  UNEXPECTED_API_STATUS: { meaning: 'the call does not expect this status; BAD_RESPONSE is raised instead', raisedBy: 'client' },
  UNKNOWN: { meaning: 'an error without a better name', raisedBy: 'any' },
  UNKNOWN_DEVICE_ID: { meaning: 'the base station does not know this device id', raisedBy: 'client' },
  UNKNOWN_PRODUCT_ID: { meaning: 'the base station does not know this product id', raisedBy: 'client' },
  UNKNOWN_SERVER_KEY: { meaning: 'the base station does not know this server key', raisedBy: 'client' },
} as const satisfies Record<string, CatalogueEntry>;

/** Names of the wrappers around a device's access control (docs/errors.md): the codes that `IamUtil` raises. */
const iam = {
  AUTHENTICATION_ERROR: { meaning: 'pairing requires a password, and the password or the user name is wrong', raisedBy: 'client' },
  BLOCKED_BY_DEVICE_CONFIGURATION: {
    meaning: 'the policies or settings of the device do not allow this client to do this',
    raisedBy: 'client',
  },
  INITIAL_USER_ALREADY_PAIRED: { meaning: 'the initial user is already paired', raisedBy: 'client' },
  INVALID_INPUT: { meaning: 'the device does not accept this value', raisedBy: 'client' },
  PAIRING_MODE_DISABLED: { meaning: 'the device does not offer this way of pairing', raisedBy: 'client' },
  ROLE_DOES_NOT_EXIST: { meaning: 'the device has no role of this name', raisedBy: 'client' },
  USERNAME_EXISTS: { meaning: 'the user name is taken, or this key belongs to another user', raisedBy: 'client' },
  USER_DOES_NOT_EXIST: { meaning: 'the device has no user of this name, or this client is not a user', raisedBy: 'client' },
} as const satisfies Record<string, CatalogueEntry>;

/** Names of our own, for states that the specification has no name for. */
const own = {
  CERTIFICATE_VALIDATION_FAILED: {
    meaning: 'the TLS certificate of the base station is not valid for the host of its address',
    raisedBy: 'any',
    own: true,
  },
  CORE_FAILED: {
    meaning: 'the data plane failed because of a bug; its connections are lost and a new data plane is created',
    raisedBy: 'any',
    own: true,
  },
  DEVICE_ID_IN_USE: { meaning: 'the device id belongs to a device with another key', raisedBy: 'device', own: true },
  FINGERPRINT_MISMATCH: { meaning: 'the peer proved a different key than expected', raisedBy: 'any', own: true },
  FINGERPRINT_IN_USE: { meaning: 'the key already belongs to a user', raisedBy: 'client', own: true },
  IAM_NOT_SUPPORTED: { meaning: 'the device has no access control that clients can use', raisedBy: 'client', own: true },
  REPLACED: { meaning: 'the same identity attached again elsewhere, and the newest connection wins', raisedBy: 'device', own: true },
  UNKNOWN_FINGERPRINT: { meaning: 'the base station has a different key for this device, or none', raisedBy: 'device', own: true },
  WRONG_DEVICE_ID: { meaning: 'the key belongs to a device with another device id', raisedBy: 'device', own: true },
  WRONG_PRODUCT_ID: { meaning: 'the key belongs to a device of another product', raisedBy: 'device', own: true },
} as const satisfies Record<string, CatalogueEntry>;

/** Every error code with its meaning. */
export const catalogue = { ...specification, ...iam, ...own } as const satisfies Record<string, CatalogueEntry>;

/** Name of an error of this project. */
export type ErrorCode = keyof typeof catalogue;

/** Returns true for a name in the catalogue. */
export function isErrorCode(name: string): name is ErrorCode {
  return Object.hasOwn(catalogue, name);
}

/**
 * Returns one clause that says what a code means, for logs and exit messages. For an unknown name, the clause of
 * UNKNOWN.
 */
export function errorMeaning(code: string): string {
  return (isErrorCode(code) ? catalogue[code] : catalogue.UNKNOWN).meaning;
}
