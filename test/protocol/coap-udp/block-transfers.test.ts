/** Which bodies are dropped when there is no room. `test/client/gateway.test.ts` tests the blocks themselves. */
import { describe, expect, test } from 'vitest';
import { blockValue } from '../../../protocol/coap/block.ts';
import type { CoapMessage } from '../../../protocol/coap/message.ts';
import { type CoapOption, OptionNumber, uintOptionOf } from '../../../protocol/coap/options.ts';
import type { CoapReply } from '../../../protocol/coap/response.ts';
import { type BlockOutcome, BlockTransfers } from '../../../protocol/coap-udp/index.ts';

const TOKEN = new Uint8Array([1]);
const GET = 1;
const POST = 2;

function message(code: number, options: CoapOption[] = [], payload = new Uint8Array(0)): CoapMessage {
  return { code, token: TOKEN, options: [{ number: OptionNumber.URI_PATH, value: new Uint8Array([120]) }, ...options], payload };
}
function upload(number: number, more = true): CoapMessage {
  return message(POST, [uintOptionOf(OptionNumber.BLOCK1, blockValue({ number, more, exponent: 6 }))], new Uint8Array(1024));
}
function download(code: number, number: number): CoapMessage {
  return message(code, [uintOptionOf(OptionNumber.BLOCK2, blockValue({ number, more: false, exponent: 6 }))]);
}
/** Answers the request. */
function answer(transfers: BlockTransfers, peer: string, request: CoapMessage, reply: CoapReply): CoapMessage {
  const taken = transfers.take(peer, request, 0);
  return 'answer' in taken ? taken.answer : transfers.reply(taken.request, reply, 0);
}
const codeOf = (taken: BlockOutcome): number => ('answer' in taken ? taken.answer.code : 0);
const CONTINUE = 95;
const OUT_OF_RESOURCES = 163;

describe('answer bodies, kept for clients that may ask for more blocks', () => {
  test.each([
    ['in number', 64, 2000],
    ['in bytes', 16, 1 << 20],
  ])('make room for a request body when they reach the limit %s', (_, peers, length) => {
    const transfers = new BlockTransfers(() => 0);
    for (let i = 0; i < peers; i++) answer(transfers, `reader ${i}`, message(GET), { status: 205, payload: new Uint8Array(length) });
    expect(codeOf(transfers.take('writer', upload(0), 1))).toBe(CONTINUE);
    expect(codeOf(transfers.take('writer', upload(1), 1))).toBe(CONTINUE);
    expect(transfers.take('writer', upload(2, false), 1)).toMatchObject({ request: { message: { payload: { length: 3072 } } } });
  });

  test('are dropped one by one, oldest first', () => {
    const transfers = new BlockTransfers(() => 0);
    const payload = new Uint8Array(2000);
    for (let i = 0; i < 64; i++) answer(transfers, `reader ${i}`, message(POST), { status: 205, payload });
    transfers.take('writer', upload(0), 1);
    expect(codeOf(transfers.take('reader 0', download(POST, 1), 2))).toBe(136);
    expect(codeOf(transfers.take('reader 1', download(POST, 1), 2))).toBe(69);
    expect(codeOf(transfers.take('reader 63', download(POST, 1), 2))).toBe(69);
  });
});

test('request bodies do not displace one another', () => {
  const transfers = new BlockTransfers(() => 0);
  for (let i = 0; i < 64; i++) expect(codeOf(transfers.take(`writer ${i}`, upload(0), 0))).toBe(CONTINUE);
  expect(codeOf(transfers.take('one more', upload(0), 0))).toBe(OUT_OF_RESOURCES);
});

test.each<[string, CoapOption[], CoapOption[]]>([
  ['a Request-Tag of 9 bytes', [{ number: 292, value: new Uint8Array(9) }], []],
  ['a Content-Format of 3 bytes', [{ number: 12, value: new Uint8Array(3) }], []],
  ['a second Content-Format', [uintOptionOf(12, 60)], [uintOptionOf(12, 60), uintOptionOf(12, 50)]],
])('ignored options do not decide to which body a block belongs: %s', (_, first, second) => {
  const transfers = new BlockTransfers(() => 0);
  const [begin, end] = [upload(0), upload(1, false)];
  expect(codeOf(transfers.take('peer', { ...begin, options: [...begin.options, ...first] }, 0))).toBe(CONTINUE);
  const taken = transfers.take('peer', { ...end, options: [...end.options, ...second] }, 0);
  expect(taken).toMatchObject({ request: { message: { payload: { length: 2048 } } } });
});

describe('a refusal', () => {
  const long = { status: 400, contentFormat: 60, payload: Uint8Array.from({ length: 2500 }, (_, i) => i & 255) };

  test('with a long body is sent in blocks, as any answer is', () => {
    const transfers = new BlockTransfers(() => 0);
    const blocks = [message(POST), download(POST, 1), download(POST, 2)].map((request) => answer(transfers, 'peer', request, long));
    expect(blocks.map(({ code, payload }) => [code, payload.length])).toEqual([
      [128, 1024],
      [128, 1024],
      [128, 452],
    ]);
    expect(Buffer.concat(blocks.map(({ payload }) => payload))).toEqual(Buffer.from(long.payload));
  });

  test('that fits into one block is sent whole, whichever block was asked for', () => {
    const transfers = new BlockTransfers(() => 0);
    const { code, payload } = answer(transfers, 'peer', download(GET, 3), { status: 404, payload: new Uint8Array(5) });
    expect([code, payload.length]).toEqual([132, 5]);
  });
});
