/** The error catalogue against the names of the specification, which are listed here. */
import { describe, expect, test } from 'vitest';
import {
  CloseCode,
  catalogue,
  closeCodeName,
  closeError,
  errorMeaning,
  isErrorCode,
  LocalError,
  NoChannelsError,
  RemoteError,
  StationCode,
  StreamCode,
  SvcError,
  stationCodeMeaning,
  streamCodeName,
  streamError,
  TransportCode,
} from '../../../protocol/errors/index.ts';

const android =
  'OK, ABORTED, BAD_RESPONSE, CLOSED, DNS, END_OF_FILE, FORBIDDEN, FUTURE_NOT_RESOLVED, INVALID_ARGUMENT, INVALID_STATE, NOT_CONNECTED, NOT_FOUND, NOT_IMPLEMENTED, NO_CHANNELS, NO_DATA, OPERATION_IN_PROGRESS, PARSE, PORT_IN_USE, STOPPED, TIMEOUT, UNKNOWN, NONE, NOT_ATTACHED';
const ios =
  'OK, ALLOCATION_ERROR, CONNECTION_REFUSED, DNS, EOF, FORBIDDEN, INVALID_ARGUMENT, INVALID_STATE, NONE, NOT_ATTACHED, NOT_CONNECTED, NOT_FOUND, NO_CHANNELS, NO_DATA, OPERATION_IN_PROGRESS, STOPPED, TIMEOUT, TOKEN_REJECTED, UNAUTHORIZED, UNKNOWN_DEVICE_ID, UNKNOWN_PRODUCT_ID, UNKNOWN_SERVER_KEY, API_UNKNOWN_ERROR, TOO_MANY_WRONG_PASSWORD_ATTEMPTS, FAILED, FAILED_WITH_DETAIL, UNEXPECTED_API_STATUS';
const client =
  'OK, ABORTED, BAD_RESPONSE, BAD_REQUEST, CLOSED, DNS, EOF, FORBIDDEN, FUTURE_NOT_RESOLVED, INVALID_ARGUMENT, INVALID_STATE, NOT_CONNECTED, NOT_FOUND, NOT_IMPLEMENTED, NO_CHANNELS, NO_DATA, OPERATION_IN_PROGRESS, PARSE, PORT_IN_USE, STOPPED, TIMEOUT, UNKNOWN, NONE, NOT_ATTACHED, TOKEN_REJECTED, COULD_BLOCK, UNAUTHORIZED, TOO_MANY_REQUESTS, UNKNOWN_PRODUCT_ID, UNKNOWN_DEVICE_ID, UNKNOWN_SERVER_KEY, CONNECTION_REFUSED, DEVICE_INTERNAL_ERROR, PRIVILEGED_PORT';
const device =
  'OK, UNKNOWN, NOT_IMPLEMENTED, OUT_OF_MEMORY, STRING_TOO_LONG, OPERATION_IN_PROGRESS, FUTURE_NOT_RESOLVED, ABORTED, STOPPED, EOF, INVALID_STATE, INVALID_ARGUMENT, INVALID_CONNECTION, NO_DATA, IN_USE, ADDRESS_IN_USE, NOT_ATTACHED, FAILED';
const iam =
  'INVALID_INPUT, BLOCKED_BY_DEVICE_CONFIGURATION, PAIRING_MODE_DISABLED, USERNAME_EXISTS, INITIAL_USER_ALREADY_PAIRED, AUTHENTICATION_ERROR, ROLE_DOES_NOT_EXIST, USER_DOES_NOT_EXIST';
const own =
  'CERTIFICATE_VALIDATION_FAILED, CORE_FAILED, DEVICE_ID_IN_USE, FINGERPRINT_IN_USE, FINGERPRINT_MISMATCH, IAM_NOT_SUPPORTED, REPLACED, UNKNOWN_FINGERPRINT, WRONG_DEVICE_ID, WRONG_PRODUCT_ID';

const names = (list: string): string[] => list.split(', ');

describe('the catalogue', () => {
  test('has exactly the names of the specification and those marked as own', () => {
    const specified = new Set([android, ios, client, device, iam].flatMap(names));
    expect(Object.keys(catalogue).toSorted()).toEqual([...specified, ...names(own)].toSorted());
    const marked = Object.entries(catalogue).filter(([, entry]) => 'own' in entry);
    expect(marked.map(([name]) => name).toSorted()).toEqual(names(own).toSorted());
  });

  test.each(Object.entries(catalogue))('%s has a meaning of one clause', (name, { meaning, raisedBy }) => {
    expect(meaning).toMatch(/^[a-z].*[a-zA-Z]$/);
    expect(['any', 'client', 'device', 'server']).toContain(raisedBy);
    expect(errorMeaning(name)).toBe(meaning);
  });

  test('has its names and no inherited ones', () => {
    expect(isErrorCode('TIMEOUT')).toBe(true);
    for (const name of ['timeout', 'toString', 'constructor', '']) expect(isErrorCode(name)).toBe(false);
    expect(errorMeaning('toString')).toBe(catalogue.UNKNOWN.meaning);
  });
});

describe('numbers on the wire', () => {
  test('transport codes are those of RFC 9000 §20.1', () => {
    expect(TransportCode).toMatchObject({
      NO_ERROR: 0,
      INTERNAL_ERROR: 1,
      CONNECTION_REFUSED: 2,
      FLOW_CONTROL_ERROR: 3,
      STREAM_LIMIT_ERROR: 4,
      STREAM_STATE_ERROR: 5,
      FINAL_SIZE_ERROR: 6,
      FRAME_ENCODING_ERROR: 7,
      TRANSPORT_PARAMETER_ERROR: 8,
      CONNECTION_ID_LIMIT_ERROR: 9,
      PROTOCOL_VIOLATION: 10,
      INVALID_TOKEN: 11,
      APPLICATION_ERROR: 12,
      KEY_UPDATE_ERROR: 14,
      AEAD_LIMIT_REACHED: 15,
      NO_VIABLE_PATH: 16,
    });
  });

  test('one number has one meaning', () => {
    const all = [TransportCode, CloseCode, StreamCode].flatMap((table) => Object.values(table)).filter((code) => code !== 0);
    expect(new Set(all).size).toBe(all.length);
    // Two bytes as a variable-length integer.
    expect(Math.max(...all)).toBeLessThan(0x4000);
  });

  test.each(Object.entries(CloseCode))('a close with %s is reported as an error of the catalogue', (name, code) => {
    const error = closeError(code, 'why');
    expect(error).toBeInstanceOf(RemoteError);
    expect(isErrorCode(error.code)).toBe(true);
    expect(error.message).toMatch(/: why$/);
    expect(closeCodeName(code)).toBe(name);
  });

  test.each(Object.entries(StreamCode))('a reset with %s is reported as an error of the catalogue', (name, code) => {
    expect(isErrorCode(streamError(code).code)).toBe(true);
    expect(streamCodeName(code)).toBe(name);
  });

  test.each([
    [CloseCode.NO_ERROR, 'CLOSED'],
    [CloseCode.BUSY, 'DEVICE_INTERNAL_ERROR'],
    [CloseCode.SHUTDOWN, 'CLOSED'],
    [CloseCode.REPLACED, 'REPLACED'],
    [CloseCode.ROUTE_CLOSED, 'CLOSED'],
    [CloseCode.FINGERPRINT_MISMATCH, 'FINGERPRINT_MISMATCH'],
    [TransportCode.PROTOCOL_VIOLATION, 'CLOSED'],
    [0x3fff_ffff, 'CLOSED'],
  ])('close %i is %s', (code, name) => {
    expect(closeError(code).code).toBe(name);
  });

  test('a refused, limited or aborted stream is STOPPED', () => {
    for (const code of [StreamCode.STREAM_REFUSED, StreamCode.STREAM_LIMIT, StreamCode.ABORTED, 12345])
      expect(streamError(code).code).toBe('STOPPED');
  });

  test('unknown numbers are shown in hexadecimal', () => {
    expect([closeCodeName(0x1fff), streamCodeName(0x10), closeCodeName(TransportCode.PROTOCOL_VIOLATION)]).toEqual([
      '0x1fff',
      '0x10',
      'PROTOCOL_VIOLATION',
    ]);
    expect(closeError(0x1fff).message).toContain('0x1fff');
    const { message } = closeError(CloseCode.REPLACED);
    expect(closeError(CloseCode.REPLACED, message).message).toBe(message);
  });

  test.each([
    [1, 'TOKEN_REJECTED'],
    [2, 'NOT_ATTACHED'],
    [3, 'UNKNOWN_PRODUCT_ID'],
    [4, 'UNKNOWN_DEVICE_ID'],
    [5, 'UNKNOWN_FINGERPRINT'],
    [6, 'TOKEN_REJECTED'],
    [7, 'WRONG_PRODUCT_ID'],
    [8, 'WRONG_DEVICE_ID'],
    [9, 'FORBIDDEN'],
    [10, 'UNKNOWN_SERVER_KEY'],
    [11, 'REPLACED'],
    [12, 'DEVICE_ID_IN_USE'],
  ])('station code %i is %s', (code, name) => {
    expect(Object.values(StationCode)).toContain(code);
    expect(stationCodeMeaning(code)?.error).toBe(name);
  });

  test('attach errors have their statuses, and other numbers are not codes', () => {
    expect([5, 7, 8].map((code) => stationCodeMeaning(code)?.status)).toEqual([404, 400, 400]);
    for (const code of [0, 13, -1, 1.5, Number.NaN]) expect(stationCodeMeaning(code)).toBeUndefined();
    expect(Object.values(StationCode)).toHaveLength(12);
  });
});

test('names of error classes survive a bundler that renames classes', () => {
  class Minified extends RemoteError {}
  const errors = [new SvcError('UNKNOWN', 'x'), new LocalError('UNKNOWN', 'x'), new Minified('UNKNOWN', 'x')];
  expect(errors.map(String)).toEqual(['SvcError: x', 'LocalError: x', 'RemoteError: x']);
});

test('NoChannelsError has the reason of each channel', () => {
  const cause = new Error('first');
  const error = new NoChannelsError({ local: 'NOT_FOUND', remote: 'UNKNOWN_PRODUCT_ID', direct: 'NONE' }, { cause });
  expect(error).toBeInstanceOf(SvcError);
  expect(error).not.toBeInstanceOf(LocalError);
  expect([error.code, error.name, error.cause]).toEqual(['NO_CHANNELS', 'NoChannelsError', cause]);
  expect([error.localChannelErrorCode, error.remoteChannelErrorCode, error.directCandidatesChannelErrorCode]).toEqual([
    'NOT_FOUND',
    'UNKNOWN_PRODUCT_ID',
    'NONE',
  ]);
  expect(error.message).toMatch(/local NOT_FOUND, remote UNKNOWN_PRODUCT_ID, direct NONE/);
});
