/**
 * Parsers outside the protocol: the file service of `svc device`, the allow lists of API keys, the audit log of a
 * device, and the answers of services and of the push provider.
 */
import { checkMessage } from '../../cli/dev/push-message.ts';
import { FileReader, FileTransferError, isSize, readPrefix, readRequest } from '../../cli/files/protocol.ts';
import { entriesOf, wholeLength } from '../../device/audit/chain.ts';
import { auditHash, auditVerifier } from '../../device/audit/signing.ts';
import { verifyEntries } from '../../device/audit/verify.ts';
import { isUnregistered, MAX_SERVICE_MESSAGE, tokenOf } from '../../protocol/control/index.ts';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { ipAllowed, isIpEntry } from '../../server/administration/ip-list.ts';
import { serviceAnswer } from '../../server/services/answer.ts';
import { fileOf, makeChain } from '../device/audit/chain.ts';
import { below, chance, hostile, pick } from './mutate.ts';
import type { Target } from './target.ts';

const INPUTS = 20;
const utf8 = new TextEncoder();
const requests = [
  '{"op":"get","name":"a.bin"}\n',
  '{"error":"no"}\n',
  '{"op":"send","name":"a.bin","size":10,"replace":true}\n{"offset":0}\n{"bytes":4}\n0123',
  '{"op":"list"}\n',
];
const entries = ['10.0.0.0/8', '192.0.2.1', '2001:db8::/32', '::ffff:10.0.0.0/104', '::/0'];

const fileService: Target = {
  name: 'file-service',
  async iterate(random) {
    for (let i = 0; i < INPUTS; i++) {
      let left = hostile(
        random,
        requests.map((request) => utf8.encode(request)),
      );
      const reader = new FileReader({
        async read(max = 1) {
          if (left.length === 0) throw new LocalError('END_OF_FILE', 'end');
          const part = left.subarray(0, 1 + below(random, Math.max(1, max)));
          left = left.subarray(part.length);
          return part;
        },
      });
      try {
        const request = readRequest(await reader.readLine());
        if (request.op === 'list') continue;
        if (request.name.includes('/') || request.name.startsWith('.')) throw new Error(`the name ${request.name} was accepted`);
        if (request.op === 'get') continue;
        readPrefix(await reader.readLine());
        const { bytes } = await reader.readLine();
        if (!isSize(bytes)) continue;
        let size = 0;
        for await (const piece of reader.bytes(bytes)) size += piece.length;
        if (size !== bytes) throw new Error(`${size} bytes instead of ${bytes}`);
      } catch (error) {
        if (!(error instanceof FileTransferError)) throw error;
      }
    }
  },
};

const ipList: Target = {
  name: 'ip-list',
  iterate(random) {
    const samples = entries.map((entry) => utf8.encode(entry));
    for (let i = 0; i < INPUTS; i++) {
      const [entry, peer] = [hostile(random, samples), hostile(random, samples)].map((bytes) => new TextDecoder().decode(bytes)) as [
        string,
        string,
      ];
      if (ipAllowed([entry], peer) && !isIpEntry(entry)) throw new Error(`${peer} was admitted by ${entry}`);
    }
  },
};

/** Ed25519, of the bytes 0 to 31: with a fixed key, a seed has the same signatures in each run. */
const AUDIT_KEY = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f
-----END PRIVATE KEY-----`;
const { lines, publicKey } = makeChain(
  [
    { event: 'device-started', details: { AppName: 'test' } },
    { event: 'paired', details: { Username: 'zoë', Mode: 'LocalOpen', Local: true } },
    { event: 'denied', details: { Action: 'IAM:DeleteUser', By: { Username: 'ann', Local: false } } },
  ],
  AUDIT_KEY,
);

/** In one file or two, only what the device wrote is valid, from its beginning. */
const auditLog: Target = {
  name: 'audit-log',
  iterate(random) {
    const { bytes: written } = fileOf(lines);
    for (let i = 0; i < INPUTS; i++) {
      const input = hostile(random, [written]);
      const end = chance(random, 0.5) ? input.length : below(random, input.length + 1);
      const files = [input.subarray(0, end), input.subarray(end)].map((bytes, index) => ({ name: `${index}.jsonl`, bytes }));
      const verdict = verifyEntries(files, { ...auditHash, ...auditVerifier() }, { publicKey });
      if (verdict.ok && Buffer.compare(input, written.subarray(0, input.length)) !== 0)
        throw new Error('an entry is valid that the device did not write');
      if (verdict.ok && files.flatMap(entriesOf).length !== verdict.entries) throw new Error('a valid entry is not shown');
      const whole = wholeLength(input);
      if (whole > 0 && input[whole - 1] !== 10) throw new Error(`${whole} bytes are not whole lines`);
    }
  },
};

const documents = [
  '{"message":"AAECAw=="}',
  '{"message":{"token":"t","notification":{"title":"Hot","body":"90 °C"},"data":{"a":"b"}}}',
  '{"error":{"code":404,"status":"NOT_FOUND","details":[{"@type":"x","errorCode":"UNREGISTERED"}]}}',
].map((document) => utf8.encode(document));
const contentTypes = ['application/json', 'text/plain', 'text/html; charset="utf-16"', 'text/plain;charset=x', ''];

/** Bodies of HTTP answers and of the push provider's documents. */
const httpBodies: Target = {
  name: 'http-bodies',
  iterate(random) {
    for (let i = 0; i < INPUTS; i++) {
      const body = hostile(random, documents);
      const text = new TextDecoder().decode(body);
      checkMessage(text);
      if (isUnregistered({ statusCode: 404, body: text }) && !text.includes('error'))
        throw new Error(`a token counts as unregistered by ${text}`);
      if (tokenOf(text) !== null && !text.includes('message')) throw new Error(`a token was found in ${text}`);
      try {
        const { message } = serviceAnswer({ status: 200, headers: { 'content-type': pick(random, contentTypes) }, body, cut: false });
        if (message.length > MAX_SERVICE_MESSAGE) throw new Error(`${message.length} bytes are too many`);
      } catch (error) {
        if (!(error instanceof RemoteError)) throw error;
      }
    }
  },
};

export const serviceTargets: readonly Target[] = [fileService, ipList, auditLog, httpBodies];
