/**
 * What a check of a direct path costs its receiver, beside one bare HMAC-SHA-256 of the same bytes with the same crypto: without the pair it would be spent on
 * every stranger's datagram that names a tag.
 *
 *   check-verify  find the tag, then verify
 *   check-answer  the same, and the answer to be sent
 */
import { encodeCheck, encodeCheckAnswer, tagOfCheck, verifyCheck } from '../protocol/stun/index.ts';
import { nodeCrypto } from '../transport/node/crypto.ts';
import type { Report, Row } from './report.ts';
import { type Contender, operationsPerSecond } from './rounds.ts';

/** What the integrity of a check covers. */
const COVERED = 56;
const SOURCE = { address: '192.0.2.1', port: 50_000 };
const BARE = 'bare HMAC';

export function run(progress: (step: string) => void): Report {
  const crypto = nodeCrypto;
  const key = crypto.randomBytes(16);
  const check = encodeCheck(crypto.randomBytes(8), key, crypto.randomBytes(12), crypto);
  const covered = check.slice(0, COVERED);
  const verify = (): void => {
    if (tagOfCheck(check) === null || !verifyCheck(check, key, crypto)) throw new Error('a good check does not hold');
  };
  const answer = (): void => {
    verify();
    encodeCheckAnswer(check, SOURCE, key, crypto);
  };
  const bare: Contender = { name: BARE, run: () => crypto.hmacSha256(key, covered) };
  const rows = [row('check-verify', verify, bare, progress), row('check-answer', answer, bare, progress)];
  const goals = [
    { case: 'check-verify', peer: BARE, atMost: 2 },
    { case: 'check-answer', peer: BARE, atMost: 4 },
  ];
  return { bench: 'paths', about: 'processor time of the checks by which two ends find a direct path.', rows, goals };
}

function row(name: string, run: () => void, bare: Contender, progress: (step: string) => void): Row {
  progress(name);
  const { ours, ...peers } = operationsPerSecond([{ name: 'ours', run }, bare]);
  if (ours === undefined) throw new Error('our own figure is missing');
  const micros = ({ median, min, max }: typeof ours) => ({ median: 1e6 / median, min: 1e6 / max, max: 1e6 / min });
  return {
    case: name,
    unit: 'µs',
    better: 'lower',
    ours: micros(ours),
    peers: Object.fromEntries(Object.entries(peers).map(([peer, figure]) => [peer, micros(figure)])),
  };
}
