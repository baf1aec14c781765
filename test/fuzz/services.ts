/** Parsers outside of the protocol: the file service of `svc device`, and the allow lists of API keys. */
import { FileReader, FileTransferError, readRequest } from '../../cli/file-protocol.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { ipAllowed, isIpEntry } from '../../server/rest/ip-list.ts';
import { below, hostile } from './mutate.ts';
import type { Target } from './target.ts';

const INPUTS = 20;
const utf8 = new TextEncoder();
const requests = ['{"op":"put","name":"a.bin","size":10}\n0123456789', '{"op":"get","name":"a.bin"}\n', '{"error":"no"}\n'];
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
        async readSome(max = 1) {
          if (left.length === 0) throw new LocalError('END_OF_FILE', 'end');
          const part = left.subarray(0, 1 + below(random, Math.max(1, max)));
          left = left.subarray(part.length);
          return part;
        },
      });
      try {
        const request = readRequest(await reader.readLine());
        if (request.name.includes('/') || request.name.startsWith('.')) throw new Error(`the name ${request.name} was taken`);
        let size = 0;
        if (request.op === 'put') for await (const piece of reader.bytes(request.size)) size += piece.length;
        if (request.op === 'put' && size !== request.size) throw new Error(`${size} bytes instead of ${request.size}`);
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

export const serviceTargets: readonly Target[] = [fileService, ipList];
