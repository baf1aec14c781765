/** The message for a connect by a pairing string that failed: what was tried, and the remedy. */
import { beforeEach, expect, test } from 'vitest';
import { explained } from '../../cli/client/failure.ts';
import { Known } from '../../cli/client/known.ts';
import { resolveTarget, type TargetOptions } from '../../cli/client/target.ts';
import { describe } from '../../cli/frame/errors.ts';
import type { ErrorCode } from '../../client/node.ts';
import { NoChannelsError, RemoteError } from '../../protocol/errors/index.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const FP = 'ab'.repeat(32);
const STATION = `p=pr,d=lamp,s=station.example:4433,sf=${FP},pwd=secret,sct=token`;
const ALONE = `p=pr,d=lamp,a=192.168.1.7:5592;192.168.2.7:5592,fp=${FP}`;

let directory: string;
beforeEach(() => {
  directory = temporaryDirectory();
});

async function said(
  given: Partial<TargetOptions>,
  remote: ErrorCode,
  direct: ErrorCode = 'NONE',
  remembered = false,
  pinned?: string,
): Promise<string> {
  const known = await Known.open(directory);
  if (remembered)
    known.remember({ ProductId: 'pr', DeviceId: 'lamp', Fingerprint: FP, ServerUrl: 'https://old.example:4433', Tokens: { [FP]: 't' } });
  if (pinned !== undefined) known.rememberStation('https://old.example:4433', { Fingerprint: pinned, Seen: true });
  const target = { ...resolveTarget({ timeout: 1000, ...given }, known), near: false };
  return describe(explained(new NoChannelsError({ local: 'NOT_FOUND', remote, direct }), target, known));
}

test.each<ErrorCode>(['TIMEOUT', 'CONNECTION_REFUSED', 'DNS'])(
  '%s at the address of the string: the message has the address, and how to give another',
  async (code) => {
    const text = await said({ device: STATION }, code);
    expect(text).toMatch(
      /; the base station was tried at https:\/\/station\.example:4433, the address in the pairing string: if its address is another, give it with --server$/,
    );
    expect(text).not.toMatch(/secret|token/);
  },
);

test('an address on the command line is not repeated, and a remembered one is named', async () => {
  expect(await said({ device: STATION, server: 'https://192.0.2.7:4433' }, 'TIMEOUT')).not.toMatch(/was tried at/);
  expect(await said({ device: 'pr.lamp' }, 'TIMEOUT', 'NONE', true)).toMatch(
    /tried at https:\/\/old\.example:4433, the remembered address: .* with --server$/,
  );
});

test('a base station known by its key, at another address: both options are needed', async () => {
  expect(await said({ device: 'pr.lamp' }, 'TIMEOUT', 'NONE', true, FP)).toMatch(/with --server and --server-fingerprint$/);
});

test('a base station for which there is no token: the message has the ways to one, and why a remembered one is not sent', async () => {
  const server = 'https://new.example:4433';
  expect(await said({ product: 'pr', deviceId: 'lamp', server }, 'INVALID_STATE')).toMatch(
    /; this client has no server connect token for https:\/\/new\.example:4433: a pairing string .*--server-key-file$/,
  );
  expect(await said({ device: 'pr.lamp', server }, 'INVALID_STATE', 'NONE', true)).toMatch(
    /--server-key-file; the remembered token of the device belongs to .* --server-fingerprint it is sent$/,
  );
  expect(await said({ device: 'pr.lamp', server, sct: 'token' }, 'INVALID_STATE', 'NONE', true)).not.toMatch(/has no server connect token/);
});

test.each<ErrorCode>(['FINGERPRINT_MISMATCH', 'TOKEN_REJECTED', 'UNKNOWN_PRODUCT_ID', 'UNKNOWN_DEVICE_ID'])(
  '%s: the string is old, or belongs to another base station',
  async (code) => {
    expect(await said({ device: STATION }, code)).toMatch(
      /the pairing string is outdated, or of another base station or device: ask for a new one$/,
    );
    expect(await said({ device: 'pr.lamp' }, code, 'NONE', true)).not.toMatch(/pairing string is outdated/);
  },
);

test('a device without a base station that does not answer: the message has the addresses', async () => {
  expect(await said({ device: ALONE }, 'NONE', 'NOT_FOUND')).toMatch(
    /the device was tried at 192\.168\.1\.7:5592 and 192\.168\.2\.7:5592: if its address is another, give it with --address$/,
  );
});

test.each<[ErrorCode, RegExp]>([
  ['AUTHENTICATION_ERROR', /`svc iam invite NAME --again`.*`svc device invite NAME`$/],
  ['USERNAME_EXISTS', /take another name, or invite that user again with `svc iam invite NAME --again`$/],
])('%s: the printed commands have their required arguments', (code, text) => {
  expect(describe(new RemoteError(code, 'refused'))).toMatch(text);
});

test('a server key that requires a token, or none, is named: no role on the device would help', () => {
  const refusal = new RemoteError('FORBIDDEN', 'the server key does not allow this kind of authorization');
  const text = describe(new NoChannelsError({ local: 'NONE', remote: 'FORBIDDEN', direct: 'NONE' }, { cause: { remote: refusal } }));
  expect(text).toContain('(FORBIDDEN): if the server key requires a token, give a fresh one with --jwt-file');
  expect(text).not.toContain('svc iam me');
});

test('a client that a device has forgotten reads that its user may be deleted, or the device set up again', () => {
  expect(describe(new RemoteError('TOKEN_REJECTED', 'refused'))).toMatch(
    /if your user was deleted or the device was set up again, ask for a new invitation: `svc pair - --replace` reads it$/,
  );
  expect(describe(new RemoteError('FORBIDDEN', 'refused'))).toMatch(/or were one before the device was set up again$/);
});

test('a stranger on the local network does not hide what the base station says, nor add to it', () => {
  const failures = {
    remote: new RemoteError('TOKEN_REJECTED', 'the base station refused'),
    local: new RemoteError('FINGERPRINT_MISMATCH', 'another key'),
  };
  const said = (cause: Partial<typeof failures>) =>
    describe(new NoChannelsError({ local: 'FINGERPRINT_MISMATCH', remote: 'TOKEN_REJECTED', direct: 'NONE' }, { cause }));
  expect(said(failures)).toMatch(
    /^no way to the device; through the base station: the base station refused \(TOKEN_REJECTED\): give a server connect token/,
  );
  expect(said(failures)).not.toMatch(/attacker|another key/);
  expect(said({ local: failures.local })).toMatch(/on the local network: another key/);
});

test('a rejected token of an issuer: a fresh one helps', () => {
  const refusal = new RemoteError('TOKEN_REJECTED', 'the base station refused (4.01): invalid JWT');
  const text = describe(new NoChannelsError({ local: 'NONE', remote: 'TOKEN_REJECTED', direct: 'NONE' }, { cause: { remote: refusal } }));
  expect(text).toMatch(/invalid JWT \(TOKEN_REJECTED\): .*fresh token.*--jwt-file/);
});
