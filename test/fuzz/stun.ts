/**
 * STUN on a socket that any host can reach: nothing is thrown, no forgery is accepted, and no answer is larger than its
 * request.
 */
import {
  answerPort,
  CHECK_LENGTH,
  encodeBinding,
  encodeBindingAnswer,
  encodeBindingToPort,
  encodeCheck,
  encodeCheckAnswer,
  isStun,
  readBindingAnswer,
  readCheckAnswer,
  tagOfCheck,
  transactionOfAnswer,
  verifyCheck,
} from '../../protocol/stun/index.ts';
import { nativeHost } from '../support/crypto.ts';
import { hostile, pick } from './mutate.ts';
import type { Target } from './target.ts';

const INPUTS = 50;
const SOURCES = [
  { address: '192.0.2.1', port: 50_000 },
  { address: '2001:db8::1', port: 1 },
];

const crypto = nativeHost(1);
const key = crypto.randomBytes(16);
const plain = encodeBinding(crypto.randomBytes(12));
const elsewhere = encodeBindingToPort(50_000, crypto.randomBytes(12));
const check = encodeCheck(crypto.randomBytes(8), key, crypto.randomBytes(12), crypto);
const answers = SOURCES.map((source) => encodeCheckAnswer(check, source, key, crypto));
const samples = [plain, elsewhere, check, ...answers, ...SOURCES.map((source) => encodeBindingAnswer(plain, source))];

export const stunTarget: Target = {
  name: 'stun',
  iterate(random) {
    for (let i = 0; i < INPUTS; i++) {
      const input = hostile(random, samples);
      const taken = [answerPort(input, 7) !== 0, tagOfCheck(input) !== null, transactionOfAnswer(input) !== null];
      if (taken.filter((each) => each).length > (isStun(input) ? 1 : 0)) throw new Error(`${hex(input)} is of several kinds`);
      const port = answerPort(input, 7);
      if (port !== 0 && port !== 7 && !(port >= 1_024 && port <= 0xffff)) throw new Error(`${hex(input)} is answered to port ${port}`);
      if (verifyCheck(input, key, crypto) && hex(input) !== hex(check)) throw new Error(`${hex(input)} is a forged check`);
      if (readCheckAnswer(input, key, crypto) !== null && !answers.some((each) => hex(each) === hex(input))) {
        throw new Error(`${hex(input)} is a forged answer`);
      }
      const read = readBindingAnswer(input);
      if (read !== null && !(read.mapped.port > 0 && read.mapped.port <= 0xffff)) throw new Error(`${hex(input)} has no port`);
      if (tagOfCheck(input) !== null && encodeCheckAnswer(input, pick(random, SOURCES), key, crypto).length !== CHECK_LENGTH) {
        throw new Error('an answer has another size than its check');
      }
      if (answerPort(input, 7) !== 0 && encodeBindingAnswer(input, pick(random, SOURCES)).length > 44)
        throw new Error('an answer is too large');
    }
  },
};

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
