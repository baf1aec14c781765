/**
 * Wrong use of `svc`: every case ends with one clear line on standard error, the right exit code and no stack trace.
 * The commands run in this process, so none of them may listen or keep running. Those that would wait for a device run
 * in virtual time.
 */
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withConnection } from '../../cli/client/open.ts';
import { type TargetOptions, withTarget } from '../../cli/client/target.ts';
import { Output, type Streams } from '../../cli/frame/output.ts';
import { runProgram } from '../../cli/frame/program.ts';
import { svc } from '../../cli/program.ts';
import { svcProcess } from '../e2e/commands.ts';
import { svcInProcess } from '../e2e/in-process.ts';
import { PEM_OF_ROOT } from '../support/fixture/station-document.ts';
import { nativeSimulation } from '../support/simulation.ts';
import { filesDone } from './doctor-clinic.ts';
import { TextStream } from './text-stream.ts';

const FP = 'ab'.repeat(32);
const PAIRING = `p=pr,d=de,sct=token,fp=${FP}`;

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-bad-'));
  await mkdir(join(directory, 'damaged'));
  await writeFile(join(directory, 'damaged', 'known.json'), '{');
  await mkdir(join(directory, 'damaged-roots'));
  const roots = { Version: 1, Devices: [], Stations: { 'https://x': { Roots: 'PEM' } } };
  await writeFile(join(directory, 'damaged-roots', 'known.json'), JSON.stringify(roots));
  await writeFile(join(directory, 'damaged', 'state.json'), '{');
  await mkdir(join(directory, 'remembered'));
  const device = { ProductId: 'pr', DeviceId: 'de', Fingerprint: FP, ServerUrl: 'https://x:4433', Tokens: { 'https://x:4433': 'token' } };
  await writeFile(join(directory, 'remembered', 'known.json'), JSON.stringify({ Version: 1, Devices: [device], Stations: {} }));
  await writeFile(join(directory, 'file'), 'content');
  await writeFile(join(directory, 'empty'), '\n');
  await writeFile(join(directory, 'token'), 'a.b.c\n');
  await writeFile(join(directory, 'two-lines'), 'one\ntwo\n');
  await writeFile(join(directory, 'root.pem'), rootCertificates[0] ?? '');
  await writeFile(join(directory, 'damaged.pem'), `${rootCertificates[0]}\n${PEM_OF_ROOT}`);
  await mkdir(join(directory, 'key'));
  await writeFile(join(directory, 'key', 'key.pem'), 'no key');
});
afterAll(() => rm(directory, { recursive: true }));

/** Runs `svc` with the words of `line`; `{dir}` stands for the test's directory. */
async function run(line: string, made: (words: string[], streams: Streams) => Command | Promise<Command> = svc) {
  const streams = { stdout: new TextStream(), stderr: new TextStream() };
  const words = line.split(' ').map((word) => word.replace('{dir}', directory));
  const code = await runProgram(await made(words, streams), words, streams);
  return { code, stdout: streams.stdout.text, stderr: streams.stderr.text };
}

/** A command that only connects to a device, in a simulated network without any. */
function reach(_: string[], streams: Streams): Command {
  const sim = nativeSimulation({ hop: filesDone });
  const frame = { environment: sim.host('desk'), output: new Output(false, streams), signal: new AbortController().signal };
  const connect = async (options: TargetOptions) => {
    let isOver = false;
    const connecting = withConnection(options, async () => {}, { frame }).finally(() => {
      isOver = true;
    });
    connecting.catch(() => {});
    // It also loads modules, which no simulation sees.
    while (!(await sim.run(() => isOver))) await filesDone();
    return connecting;
  };
  return new Command('svc').addCommand(withTarget(new Command('reach')).action(connect));
}

describe('wrong use ends with exit code 2 and one line', () => {
  test.each([
    ['an unknown command', 'fly', /unknown command 'fly'/],
    ['a name that is not known in place of a pairing string', 'connect home --state {dir}/s1', /no device "home" \(none is known yet/],
    ['a join string in place of a pairing string', 'pair svc://join#~AQID --state {dir}/s1', /a join string, for a device/],
    ['a cut link', 'pair svc://pair#~AQEEcHItMQ --state {dir}/s1', /pairing link: it is cut or mistyped; copy the whole of it again/],
    ['a user name for no user', `pair ${PAIRING} --no-user --username bob`, /--username has no effect with --no-user/],
    ['a mode for no user', `pair ${PAIRING} --no-user --mode LocalOpen`, /--mode has no effect with --no-user/],
    ['a key name for no user', `pair ${PAIRING} --no-user --key-name phone`, /--key-name has no effect with --no-user/],
    ['an unknown option', 'coap GET / --fly', /unknown option '--fly'/],
    ['a misspelt option', 'coap GET / --addres 1:1', /--address/],
    ['no method', 'coap', /missing required argument/],
    ['too many arguments', 'key show more', /too many arguments/],
    ['an unknown CoAP method', 'coap PATCH /x', /PATCH is not a method: it is GET, POST, PUT or DELETE/],
    ['help for an unknown command', 'fly --help', /unknown command 'fly': there are basestation, admin, device/],
    ['help for an unknown command of a group', 'admin fly -h', /unknown command 'fly': there are product, device/],
    ['help for an unknown command of the device', 'device fly --help', /unknown command 'fly': there are invite, explain, audit/],
    ['a PUT to observe', 'coap PUT /x --observe', /only GET and POST can be observed, not PUT/],
    ['a count without observation', 'coap GET /x --count 2', /--count needs --observe/],
    ['an unchanged payload as JSON', 'coap GET /x --raw --json', /--raw and --json exclude each other/],
    ['an option of a request to discover', 'coap discover --observe --state {dir}/s1', /--observe has no effect/],
    ['a query that is not encoded', 'coap GET /x?x=%', /the query of "\/x\?x=%" cannot be sent/],
    ['an option for a device without one', 'status --relay-only --state {dir}/s1', /--relay-only has effect only with a device/],
    [
      'a token twice',
      'coap GET /x --address 127.0.0.1:9 --jwt a.b.c --jwt-file x --state {dir}/j1',
      /--jwt and --jwt-file exclude each other/,
    ],
    ['a file without a token', 'coap GET /x --address 127.0.0.1:9 --jwt-file {dir}/file --state {dir}/j1', /file holds no token/],
    [
      'a token without its server key',
      `coap GET /x -d p=pr,d=de,fp=${FP} --server https://x --jwt-file {dir}/token --state {dir}/j1`,
      /needs the server key.*--server-key/,
    ],
    ['a path without slash', 'coap GET x', /must start with/],
    ['a secret twice', 'coap GET /x --sct a --sct-file b', /--sct and --sct-file exclude each other/],
    ['two secrets from standard input', 'coap GET /x --sct - --server-key-file -', /standard input can be read once/],
    ['an invalid server key', 'admin key add short --data {dir}/k9', /A server key is sk-/],
    ['a payload twice', 'coap PUT /x --payload a --payload-file b', /exclude each other/],
    ['an invalid content format', 'coap PUT /x --payload a --content-format nice', /content format/i],
    ['a content format without payload', 'coap PUT /x --content-format json', /needs --payload/],
    ['an address without port', 'coap GET /x --address 127.0.0.1', /host:port/],
    ['an address with port 0', 'coap GET /x --address 127.0.0.1:0', /host:port/],
    ['a list beside a device', 'connect lamp --list', /take no device/],
    ['two things at once', 'connect --list --forget lamp', /cannot be used with/],
    ['a server of another scheme', 'coap GET /x --server http://station:4433', /https:/],
    ['a short fingerprint', 'coap GET /x --fingerprint abcd', /64 hexadecimal digits/],
    ['a bad id', 'coap GET /x --product a.b', /An id is/],
    ['half of the ids', 'coap GET /x --product pr --state {dir}/s1', /belong together/],
    ['no device known', 'coap GET /x --state {dir}/s2', /svc pair -/],
    ['an unknown device', 'coap GET /x -d moon --state {dir}/s3', /no device "moon"/],
    ['a broken pairing string', 'connect p=pr --state {dir}/s4', /pairing string/],
    ['a pairing string twice', `connect ${PAIRING} -d ${PAIRING} --state {dir}/s4`, /once/],
    ['no way to the device', `connect ${PAIRING} --no-local --state {dir}/s5`, /--server.*--address.*--no-local/],
    ['roots that are not there', `connect ${PAIRING} --root-certs {dir}/nowhere.pem`, /nowhere\.pem: no such file or directory\./],
    [
      'a damaged root beside a whole one',
      `connect ${PAIRING} --root-certs {dir}/damaged.pem`,
      /damaged\.pem: root certificate 2 is damaged/,
    ],
    ['roots that are a directory', `connect ${PAIRING} --root-certs {dir}`, /it is a directory/],
    ['roots without end', `connect ${PAIRING} --root-certs /dev/zero`, /\/dev\/zero: it is longer than 1048576 bytes/],
    ['a base station at port 0', `connect ${PAIRING} --server https://x:0`, /Expected host, host:port or https:\/\/host:port/],
    ['a WebSocket with a password', `connect ${PAIRING} --server https://x --server-websocket wss://a:b@x/`, /Expected wss:\/\/host\/path/],
    ['a WebSocket of no base station', 'device --data {dir}/d3 --product p --device-id d --server-websocket wss://x/', /needs --server/],
    ['invalid roots', `connect ${PAIRING} --root-certs {dir}/file`, /no CERTIFICATE block/],
    [
      'roots of no base station',
      'device --data {dir}/d3 --product p --device-id d --root-certs {dir}/root.pem',
      /--root-certs needs --server/,
    ],
    [
      'roots beside a fingerprint',
      `device --data {dir}/d3 --product p --device-id d --server https://x --root-certs {dir}/root.pem --server-fingerprint ${FP}`,
      /no effect with/,
    ],
    ['an invalid name', `connect ${PAIRING} --name a.b --state {dir}/s7`, /A name|a name/],
    ['forgetting what is not known', 'connect --forget moon --state {dir}/s8', /there is no device "moon" \(none is known\)/],
    ['first contact without a fingerprint', 'coap GET /x --address 127.0.0.1:9 --state {dir}/s9', /--fingerprint/],
    ['a pairing with an unknown device', 'pair moon --state {dir}/p1', /no device "moon"/],
    ['a pairing with a broken link', 'pair svc://pair#p=pr --state {dir}/p2', /not a pairing link: it is cut or mistyped/],
    ['a device to pair with twice', `pair ${PAIRING} -d ${PAIRING} --state {dir}/p3`, /once/],
    ['standard input for two things', 'pair - --password-file - --state {dir}/p4', /standard input can be read once/],
    ['standard input for a pairing string and a token', 'pair - --sct -', /standard input can be read once: .*other secrets in files/],
    ['an unknown pairing mode', `pair ${PAIRING} --mode Telepathy --state {dir}/p5`, /PasswordOpen, LocalOpen/],
    ['an invalid name to pair under', `pair ${PAIRING} --name a.b --state {dir}/p6`, /a name has/],
    [
      'a password of two lines',
      `pair ${PAIRING} --password-file {dir}/two-lines --state {dir}/p7`,
      /the password in .*two-lines is more than one line/,
    ],
    ['an empty password', `pair ${PAIRING} --password-file {dir}/empty --state {dir}/p7`, /empty is empty/],
    ['no first contact without fingerprint or password', 'pair p=pr,d=de --address 127.0.0.1:9 --state {dir}/p8', /--fingerprint/],
    [
      'no first contact with a password that the mode does not use',
      'pair p=pr,d=de --mode LocalOpen --password-file {dir}/file --address 127.0.0.1:9 --state {dir}/p9',
      /--fingerprint/,
    ],
    [
      'a base station for what is possible on the local network only',
      'pair pr.de --mode LocalOpen --username bob --relay-only --state {dir}/remembered',
      /works only on the local network: leave --relay-only out/,
    ],
    [
      'waiting for a device that is to be on the local network',
      'pair pr.de --mode LocalOpen --username bob --wait --state {dir}/remembered',
      /works only on the local network, where --wait has no effect: leave it out/,
    ],
    [
      'no local network where nothing else is possible',
      'pair pr.de --mode LocalInitial --no-local --state {dir}/remembered',
      /works only on the local network: leave --no-local out, or give --address/,
    ],
    ['no user', 'iam users show', /missing required argument/],
    ['nothing to set', 'iam users set bob', /nothing to change/],
    ['a setting given and cleared', 'iam users set bob --display-name B --clear display-name', /given and cleared/],
    ['a setting that cannot be cleared', 'iam users set bob --clear role', /display-name, password, oauth-subject/],
    [
      'a fingerprint of a user that is none',
      'iam fingerprints add bob abcd',
      /abcd is not a fingerprint: A fingerprint is 64 hexadecimal digits/,
    ],
    [
      'a setting of the device that is none',
      'iam settings set magic on',
      /^svc: magic is not a setting: Allowed choices are password-open-pairing/,
    ],
    ['an invalid state of a setting', 'iam settings set local-open-pairing maybe', /on, off/],
    ['a role for a user who is there', 'iam invite bob --again --role Standard', /'--again' cannot be used with option '--role/],
    [
      'all addresses of the machine as the one that devices reach',
      'basestation --data {dir}/station --url https://[::]',
      /^svc: .*:: stands for all/,
    ],
    ['the same by IPv4', 'basestation --data {dir}/station --url https://0.0.0.0:7000', /0\.0\.0\.0 stands for all addresses/],
    ['an invalid base of links', 'iam invite bob --link-base example.com', /absolute URL/],
    ['categories and none', 'push categories heat --clear', /not both/],
    ['a push token without project', 'push set project', /missing required argument/],
    ['a timeout of nothing', 'coap GET /x --timeout 0', /1 to 3600/],
    ['a bad local port', 'tunnel web --local-port 65536', /65535/],
    ['a bad file name on the device', 'stream send {dir}/file ../x', /cannot be a name/],
    ['a directory to send', 'stream send {dir} x', /not a file; - sends standard input/],
    ['a name with a control character', 'stream send {dir}/file a\tb', /"a\\tb" cannot be a name/],
    ['a name that is too long', `stream receive ${'a'.repeat(129)}`, /1 to 128/],
    ['a file to fetch with an invalid name', 'stream receive ../x', /cannot be a name/],
    ['standard input without a name', 'stream send -', /no name: say what to call it/],
    ['standard input for a file and a token', 'stream send - x --jwt -', /standard input can be read once/],
    ['a directory as the place of a file', 'stream receive x {dir}', /is a directory: name the file in it, for example .*\/x/],
    ['a place that is no file', 'stream receive x /dev/null --force', /\/dev\/null is not a file; - is standard output/],
    ['JSON beside a file on standard output', 'stream receive x - --json', /exclude each other: standard output carries the file/],
    ['nothing to replace on standard output', 'stream receive x - --force', /--force has no effect/],
    ['no stream command', 'stream', /Usage|unknown|missing/],
    ['a first start without ids', 'device --data {dir}/d1', /--join - .* or --product and --device-id/],
    ['a join string with --init', 'device --data {dir}/d4 --join svc://join#~ --init', /--join.*cannot be used with.*--init/],
    ['a join string that is cut', 'device --data {dir}/d4 --join svc://join#~AQEP', /not a join string: it is cut or mistyped/],
    [
      'a join string in a file that is not there',
      'device --data {dir}/d4 --join {dir}/nowhere',
      /--join: cannot read .*nowhere: no such file or directory; - reads/,
    ],
    ['ids that are too long together', `device --data {dir}/d2 --product ${'p'.repeat(40)} --device-id ${'d'.repeat(40)}`, /together/],
    [
      'a fingerprint of no base station',
      `device --data {dir}/d3 --product p --device-id d --server-fingerprint ${FP}`,
      /--server-fingerprint needs --server/,
    ],
    ['an invalid allow list', 'device --data {dir}/d4 --product p --device-id d --allow nonsense', /--allow nonsense/],
    ['an allow list of any client', 'device --data {dir}/d4 --product p --device-id d --allow any', /--allow any/],
    ['an unknown pairing mode', 'device --data {dir}/d4 --pairing Sesame', /PasswordOpen,LocalOpen,PasswordInvite,LocalInitial/],
    ['an unknown first state', 'device --data {dir}/d4 --iam open', /production, demo/],
    ['an unknown log level', 'device --data {dir}/d4 --log-level loud', /error, warn, info, debug, trace/],
    ['a missing configuration', 'device --data {dir}/d4 --config {dir}/nowhere.json', /nowhere\.json: there is no such file/],
    ['an explanation of nothing', 'device explain --data {dir}/d4', /--action/],
    ['an attribute without a value', 'device explain --data {dir}/d4 --action A --attribute x', /name=value/],
    ['an invitation without a user', 'device invite --data {dir}/d4', /user/],
    ['an invitation to a device that was never set up', 'device invite admin --data {dir}/d4', /--product and --device-id/],
    ['a tunnel without host', 'device --data {dir}/d5 --tunnel web=http', /id=type:host:port/],
    ['a tunnel with port 0', 'device --data {dir}/d6 --tunnel web=http:127.0.0.1:0', /host:port with a port from 1 to 65535/],
    ['a UDP tunnel without port', 'device --data {dir}/d8 --udp-tunnel names=dns:127.0.0.1', /host:port/],
    ['an invalid UDP tunnel', 'device --data {dir}/d8 --udp-tunnel x=y', /for example names=dns:127\.0\.0\.1:53/],
    [
      'two tunnels of one id',
      'device --data {dir}/d8 --product p --device-id d --tunnel a=http:b:1 --tunnel a=http:b:2 --init',
      /--tunnel a: another service has this id/,
    ],
    ['a configuration that is a directory', 'device --data {dir}/d4 --config {dir}', /--config: cannot read .*: it is a directory/],
    ['a bad local port of a device', 'device --data {dir}/d7 --local-port x', /65535/],
    ['a bad limit of tunnel connections', 'device --data {dir}/d7 --tunnel-connections -1', /from 0 to 100000/],
  ])('%s', async (_, line, message) => {
    const { code, stderr } = await run(line);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
    if (line !== 'stream') expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(code).toBe(2);
  });

  test('in a process of its own', { tags: ['slow'] }, async () => {
    const wrong = { code: 2, stdout: '', stderr: expect.stringMatching(/^svc: [^\n]*unknown option '--fly'[^\n]*\n$/) };
    expect(await svcProcess({}, 'coap', 'GET', '/', '--fly')).toMatchObject(wrong);
  });

  test('after the warning, where a token in the arguments is none', async () => {
    const { code, stderr } = await svcInProcess(`coap GET /x --address 127.0.0.1:9 --jwt a.b --state ${directory}/j1`.split(' '));
    expect(stderr).toMatch(/^warning: the token was in the arguments[^\n]*\nsvc: --jwt is no token \(JWT\): three parts[^\n]*\n$/);
    expect(code).toBe(2);
  });
});

describe('a failure ends with exit code 1 and one line', () => {
  test.each([
    ['a damaged state', 'coap GET /x --state {dir}/damaged', /known\.json/],
    ['a state with damaged roots', 'coap GET /x --state {dir}/damaged-roots', /known\.json is damaged: repair it/],
    ['a state that is a file', 'key create --state {dir}/file', /{dir}\/file|file of that name|not a directory/],
    ['a state below a file', 'key create --state {dir}/file/x', /not a directory|directory/],
    ['no key', 'key show --state {dir}/k1', /svc key create/],
    ['an invalid key', 'key show --state {dir}/key', /key\.pem: .*private key/],
    ['an explanation without a device', 'device explain --data {dir}/nothing --action A', /no key\.pem/],
    ['an invalid device key', 'device --data {dir}/key --product p --device-id d --init', /key\.pem: .*private key/],
    ['an admin directory without data', 'admin product list --data {dir}/nothing', /has no data of a base station/],
    [
      'a device of no product',
      `admin device add pr de --fingerprint ${FP} --data {dir}/station`,
      /there is no product pr \(NOT_FOUND\)\s*$/,
    ],
    ['a password file that is not there', `pair ${PAIRING} --password-file {dir}/nothing --state {dir}/p9`, /nothing: no such file/],
    ['a payload file that is not there', 'coap PUT /x --payload-file {dir}/nothing', /nothing: no such file/],
    ['a payload file that is a directory', 'coap PUT /x --payload-file {dir}', /cannot read {dir}: it is a directory/],
    [
      'a password file that is a directory',
      `pair ${PAIRING} --password-file {dir} --state {dir}/p9`,
      /cannot read {dir}: it is a directory/,
    ],
    [
      'a token file that is not there',
      'coap GET /x --address 127.0.0.1:9 --jwt-file {dir}/nothing --state {dir}/j1',
      /cannot read .*nothing/,
    ],
    ['a file to send that is not there', 'stream send {dir}/nothing', /nothing: no such file/],
    ['a place of a file that is taken', 'stream receive x {dir}/file', /{dir}\/file exists already: give another name, or --force/],
    ['a damaged device directory', 'device --data {dir}/damaged --product p --device-id d', /state\.json/],
    ['a device directory that is a file', 'device --data {dir}/file --product p --device-id d', /file/],
    [
      'a base station that TLS does not prove',
      `connect ${PAIRING} --server https://127.0.0.1:9 --no-local --timeout 1 --state {dir}/n5`,
      /127\.0\.0\.1 does not answer by https.*--server-fingerprint/,
    ],
  ])('%s', async (_, line, message) => {
    const { code, stderr } = await run(line);
    expect(stderr).toMatch(new RegExp(message.source.replace('{dir}', directory)));
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(code).toBe(1);
  });
});

describe('a connect that fails ends with exit code 1 and one line', () => {
  const pinned = `--fingerprint ${FP} --state {dir}/unreached`;
  const station = `-d ${PAIRING} --server-fingerprint ${FP} --state {dir}/unreached`;
  test.each([
    ['no device at the address', `--address 127.0.0.1:9 ${pinned}`, /\(NOT_FOUND\)/],
    ['a host that does not resolve', `--address nothing.invalid:9 ${pinned}`, /nothing\.invalid.*DNS/],
    ['a base station that is not there', `${station} --server https://127.0.0.1:9`, /\(CONNECTION_REFUSED\)/],
    ['a base station that does not resolve', `${station} --server https://nothing.invalid --no-local`, /nothing\.invalid.*DNS/],
  ])('%s', async (_, options, message) => {
    const { code, stderr } = await run(`reach ${options}`, reach);
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/^svc: [^\n]+\n$/);
    expect(code).toBe(1);
  });
});

test.each([
  [
    `--server https://127.0.0.1:9 --server-fingerprint ${FP} --server-key k`,
    /^warning: --server-key is not used: the server connect token/m,
  ],
  [
    `--server https://127.0.0.1:9 --server-fingerprint ${FP} --server-key k --jwt a.b.c`,
    /^warning: --server-key and the token of an issuer are not used/m,
  ],
  ['--address 127.0.0.1:9 --jwt a.b.c', /^warning: the token of an issuer is not used: .*directly to the device/m],
  ['--address 127.0.0.1:9 --sct s', /^warning: the server connect token was in the arguments, .*--sct-file, or --sct -/m],
  ['--address 127.0.0.1:9 --server-key s', /^warning: the server key was in the arguments, .*--server-key-file/m],
  ['--address 127.0.0.1:9 --jwt a.b.c', /^warning: the token was in the arguments, .*--jwt-file/m],
])('warns of an option without effect: %s', async (options, message) => {
  const { stderr } = await run(`reach -d ${PAIRING} --state {dir}/unused ${options}`, reach);
  expect(stderr).toMatch(message);
});

test.each(['connect --list', 'connect --forget moon', 'key show', 'coap GET /x -d moon', 'iam me', 'tunnel -d moon'])(
  'svc %s makes no directory for a mistyped --state',
  async (line) => {
    const state = join(directory, 'mistyped');
    await svcInProcess([...line.split(' '), '--state', state]);
    await expect(access(state)).rejects.toMatchObject({ code: 'ENOENT' });
  },
);

test('with --init warns that options for a single run have no effect', { tags: ['slow'] }, async () => {
  const line = `device --data ${directory}/init --product p --device-id d --init --tunnel a=http:b:1 --p2p-port 0`;
  const { code, stderr } = await svcInProcess(line.split(' '));
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(/^warning: with --init, --tunnel, --p2p-port have no effect: give that at each start$/m),
  ]);
});

describe('help', () => {
  test.each([
    '--help',
    'device --help',
    'connect --help',
    'coap --help',
    'stream send --help',
    'tunnel --help',
    'key create --help',
    'basestation --help',
    'admin --help',
  ])('svc %s shows usage and exit codes, and succeeds', async (line) => {
    const { code, stdout, stderr } = await run(line);
    expect(stdout).toMatch(/^Usage: svc /);
    expect(stdout).toMatch(/Exit codes: 0 /);
    expect(stderr).toBe('');
    expect(code).toBe(0);
  });

  test('--version prints the version', async () => {
    expect(await run('--version')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
  });
});
