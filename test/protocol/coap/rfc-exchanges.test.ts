/**
 * Message flows from the standards. Each test is named after its figure. One end is ours, the other follows the figure:
 *
 * - RFC 7959 §3.1 (figures 2 to 4), §3.2 (figures 7 and 9), §3.3 (figures 10 and 11), §3.4 (figures 12 and 13).
 * - RFC 8323 §6.1 and §6.2 (figures 13 and 14).
 * - RFC 7641 appendix A.1 (figures 3 and 4).
 *
 * Where our ends differ from a figure on purpose:
 *
 * - Our server proposes no block size below what the client asks for, and our client asks for none. So our client
 *   follows figures 2, 10 and 12, our server follows figures 3, 11 and 13, and figure 4 after a first request that asks
 *   for 128. Our client fails an upload whose BERT block is answered with another size, so figure 9 tests only that the
 *   server takes 32-byte blocks.
 * - One token serves a whole exchange, so the blocks of a notification are requested with the observation's token, not
 *   with another one (0xfc in figures 12 and 13).
 * - Figures 5 and 6 repeat datagrams, which is the task of the channel below. In figure 8 the server answers each block
 *   by itself, which ours does not.
 */
import { describe, expect, test } from 'vitest';
import { type CoapMessage, type CoapOption, type CoapReply, Exchanges } from '../../../protocol/coap/index.ts';
import { OptionNumber, readUint, uintOptionOf } from '../../../protocol/coap/options.ts';
import { ascii, blockNumber, message, next, path, requestOf, responseOf, shownBlock, textOf } from './messages.ts';
import { randomBytes, seededRandom } from './pair.ts';

const GET = 0x01;
const POST = 0x02;
const PUT = 0x03;
const CHANGED = 0x44;
const CONTENT = 0x45;
const CONTINUE = 0x5f;
const KIB = 1024;

const lone = (): Exchanges => new Exchanges({ randomToken: (length) => new Uint8Array(length).fill(9) });
const body = (length: number): Uint8Array => randomBytes(seededRandom(length), length);

/** A block option as in the figures: kind, number/more/size. */
function blockOption(text: string): CoapOption {
  const [kind, number, more, size] = text.split(/[:/]/);
  const exponent = size === 'BERT' ? 7 : Math.log2(Number(size)) - 4;
  return uintOptionOf(kind === '1' ? OptionNumber.BLOCK1 : OptionNumber.BLOCK2, blockNumber(Number(number), Number(more), exponent));
}

/** Returns a message as in the figures: code and block options, Block2 first. */
function shown(each: CoapMessage): string {
  const code = `${each.code >> 5}.${String(each.code & 31).padStart(2, '0')}`;
  const [block2, block1] = [shownBlock(each, OptionNumber.BLOCK2), shownBlock(each, OptionNumber.BLOCK1)];
  return [code, block2 && `2:${block2}`, block1 && `1:${block1}`].filter((part) => part !== undefined).join(' ');
}

const uint = (each: CoapMessage, number: number): number | undefined => {
  const option = each.options.find((candidate) => candidate.number === number);
  return option && readUint(option.value);
};
const segments = (each: CoapMessage): string[] =>
  each.options.filter(({ number }) => number === OptionNumber.URI_PATH).map(({ value }) => textOf(value));

/** Passes a request of the figure to our server. Calls `reply` when the request is complete. Returns the answer. */
function serve(server: Exchanges, request: Uint8Array, reply: (payload: Uint8Array) => CoapReply): CoapMessage {
  server.receive(request, 0);
  const event = server.nextEvent();
  if (event !== null) server.responder.respond(requestOf(event).exchange, reply(requestOf(event).request.payload), 0);
  return next(server)!;
}

describe('RFC 7959 §3.1, Block2', () => {
  test('figure 2: simple block-wise GET, the server proposes 128', () => {
    const client = lone();
    client.request({ method: 'GET', path: '/status' }, 0);
    const whole = body(300);
    const sent: string[] = [];
    for (const [answer, from, to] of [
      ['2:0/1/128', 0, 128],
      ['2:1/1/128', 128, 256],
      ['2:2/0/128', 256, 300],
    ] as const) {
      const request = next(client)!;
      expect([request.code, segments(request)]).toEqual([GET, ['status']]);
      sent.push(shown(request));
      client.receive(message(CONTENT, [...request.token], [blockOption(answer)], whole.subarray(from, to)), 0);
    }
    expect(sent).toEqual(['0.01', '0.01 2:1/0/128', '0.01 2:2/0/128']);
    expect(client.transmit()).toBeNull();
    const { response, final } = responseOf(client.nextEvent());
    expect([response.status, final, Buffer.compare(response.payload, whole)]).toEqual([205, true, 0]);
  });

  test.each<[string, string[], string[]]>([
    [
      'figure 3: early negotiation',
      ['2:0/0/64', '2:1/0/64', '2:2/0/64', '2:3/0/64', '2:4/0/64', '2:5/0/64'],
      ['2:0/1/64', '2:1/1/64', '2:2/1/64', '2:3/1/64', '2:4/1/64', '2:5/0/64'],
    ],
    [
      'figure 4: late negotiation',
      ['2:0/0/128', '2:2/0/64', '2:3/0/64', '2:4/0/64', '2:5/0/64'],
      ['2:0/1/128', '2:2/1/64', '2:3/1/64', '2:4/1/64', '2:5/0/64'],
    ],
  ])('%s', (_, requests, answers) => {
    const server = lone();
    const whole = body(350);
    const got = requests.map((asked) =>
      serve(server, message(GET, [7], [...path('status'), blockOption(asked)]), () => ({ status: 205, payload: whole })),
    );
    expect(got.map(shown)).toEqual(answers.map((answer) => `2.05 ${answer}`));
    expect(Buffer.concat(got.map(({ payload }) => payload))).toEqual(Buffer.from(whole));
    const tags = got.map(({ options }) => options.find(({ number }) => number === OptionNumber.ETAG)?.value.join());
    expect(tags[0]).toBeDefined();
    expect(new Set(tags).size).toBe(1);
  });
});

describe('RFC 7959 §3.2, Block1', () => {
  test.each<[string, [string, number, number][], string[]]>([
    [
      'figure 7: simple atomic block-wise PUT',
      [
        ['1:0/1/128', 0, 128],
        ['1:1/1/128', 128, 256],
        ['1:2/0/128', 256, 300],
      ],
      ['2.31 1:0/1/128', '2.31 1:1/1/128', '2.04 1:2/0/128'],
    ],
    [
      // Our server answers the first block with the client's size; the client continues with 32 anyway.
      'figure 9: atomic block-wise PUT with negotiation',
      [
        ['1:0/1/128', 0, 128],
        ['1:4/1/32', 128, 160],
        ['1:5/1/32', 160, 192],
        ['1:6/0/32', 192, 210],
      ],
      ['2.31 1:0/1/128', '2.31 1:4/1/32', '2.31 1:5/1/32', '2.04 1:6/0/32'],
    ],
  ])('%s', (_, requests, answers) => {
    const server = lone();
    const whole = body(requests.at(-1)![2]);
    const seen: Uint8Array[] = [];
    const got = requests.map(([option, from, to]) =>
      serve(server, message(PUT, [8], [...path('options'), blockOption(option)], whole.subarray(from, to)), (payload) => {
        seen.push(payload);
        return { status: 204 };
      }),
    );
    expect(got.map(shown)).toEqual(answers);
    expect(seen.map((payload) => Buffer.compare(payload, whole))).toEqual([0]);
  });
});

describe('RFC 7959 §3.3, Block1 and Block2', () => {
  test('figure 10: block-wise response to a POST', () => {
    const client = lone();
    client.request({ method: 'POST', path: '/soap', payload: body(300) }, 0);
    const whole = body(500);
    const sent: CoapMessage[] = [];
    for (const [answer, from, to] of [
      ['2:0/1/128', 0, 128],
      ['2:1/1/128', 128, 256],
      ['2:2/1/128', 256, 384],
      ['2:3/0/128', 384, 500],
    ] as const) {
      const request = next(client)!;
      expect([request.code, segments(request)]).toEqual([POST, ['soap']]);
      sent.push(request);
      client.receive(message(CHANGED, [...request.token], [blockOption(answer)], whole.subarray(from, to)), 0);
    }
    expect(sent.map(shown)).toEqual(['0.02', '0.02 2:1/0/128', '0.02 2:2/0/128', '0.02 2:3/0/128']);
    // "no payload for requests with Block2 with NUM != 0"
    expect(sent.map(({ payload }) => payload.length)).toEqual([300, 0, 0, 0]);
    const { response } = responseOf(client.nextEvent());
    expect([response.status, Buffer.compare(response.payload, whole)]).toEqual([204, 0]);
  });

  test('figure 11: block-wise POST with block-wise response, early negotiation', () => {
    const server = lone();
    const [request, response] = [body(300), body(250)];
    const post = (options: string[], payload?: Uint8Array): CoapMessage =>
      serve(server, message(POST, [1], [...path('soap'), ...options.map(blockOption)], payload), (whole) => {
        expect(Buffer.compare(whole, request)).toBe(0);
        return { status: 204, payload: response };
      });
    const got = [
      post(['1:0/1/128'], request.subarray(0, 128)),
      post(['1:1/1/128'], request.subarray(128, 256)),
      post(['1:2/0/128', '2:0/0/64'], request.subarray(256)),
      post(['2:1/0/64']),
      post(['2:2/0/64']),
      post(['2:3/0/64']),
    ];
    expect(got.map(shown)).toEqual([
      '2.31 1:0/1/128',
      '2.31 1:1/1/128',
      '2.04 2:0/1/64 1:2/0/128',
      '2.04 2:1/1/64',
      '2.04 2:2/1/64',
      '2.04 2:3/0/64',
    ]);
    expect(Buffer.concat(got.slice(2).map(({ payload }) => payload))).toEqual(Buffer.from(response));
  });
});

describe('RFC 7959 §3.4, Observe and Block2', () => {
  test('figure 12: observe sequence with block-wise response', () => {
    const client = lone();
    client.request({ method: 'GET', path: '/status-icon', observe: 0 }, 0);
    const first = next(client)!;
    expect([first.code, segments(first), uint(first, OptionNumber.OBSERVE), shown(first)]).toEqual([GET, ['status-icon'], 0, '0.01']);
    const states = [
      { sequence: 62_350, etag: 0x6f00f38e, whole: body(309) },
      { sequence: 62_354, etag: 0x6f00f392, whole: body(310).slice(1) },
    ];
    for (const { sequence, etag, whole } of states) {
      const send = (answer: string, from: number, to: number, options: CoapOption[] = []): void =>
        client.receive(
          message(
            CONTENT,
            [...first.token],
            [blockOption(answer), uintOptionOf(OptionNumber.ETAG, etag), ...options],
            whole.subarray(from, to),
          ),
          0,
        );
      send('2:0/1/128', 0, 128, [uintOptionOf(OptionNumber.OBSERVE, sequence)]);
      const second = next(client)!;
      send('2:1/1/128', 128, 256);
      const third = next(client)!;
      send('2:2/0/128', 256, whole.length);
      expect([second, third].map(shown)).toEqual(['0.01 2:1/0/128', '0.01 2:2/0/128']);
      expect([second, third].map((each) => [segments(each), uint(each, OptionNumber.OBSERVE)])).toEqual([
        [['status-icon'], undefined],
        [['status-icon'], undefined],
      ]);
      const { response, final } = responseOf(client.nextEvent());
      expect([response.observe, final, Buffer.compare(response.payload, whole)]).toEqual([sequence, false, 0]);
    }
  });

  test('figure 13: observe sequence with early negotiation', () => {
    const server = lone();
    server.receive(message(GET, [0xfb], [...path('status-icon'), uintOptionOf(OptionNumber.OBSERVE, 0), blockOption('2:0/0/64')]), 0);
    const { exchange, request } = requestOf(server.nextEvent());
    expect(request.observe).toBe(true);
    const tags = [300, 309].map((length) => {
      const whole = body(length);
      server.responder.respond(exchange, { status: 205, observe: true, maxAge: 60, payload: whole }, 0);
      const got = [next(server)!];
      for (const asked of ['2:1/0/64', '2:2/0/64', '2:3/0/64', '2:4/0/64']) {
        server.receive(message(GET, [0xfb], [...path('status-icon'), blockOption(asked)]), 0);
        got.push(next(server)!);
      }
      expect(got.map(shown)).toEqual(['2.05 2:0/1/64', '2.05 2:1/1/64', '2.05 2:2/1/64', '2.05 2:3/1/64', '2.05 2:4/0/64']);
      expect(got.map((each) => uint(each, OptionNumber.OBSERVE) !== undefined)).toEqual([true, false, false, false, false]);
      expect(uint(got[0]!, OptionNumber.MAX_AGE)).toBe(60);
      expect(got.at(-1)!.payload).toHaveLength(length - 256);
      expect(Buffer.concat(got.map(({ payload }) => payload))).toEqual(Buffer.from(whole));
      const etags = new Set(got.map((each) => uint(each, OptionNumber.ETAG)));
      expect(etags.size).toBe(1);
      return [...etags][0];
    });
    expect(tags[0]).not.toBe(tags[1]);
  });
});

describe('RFC 8323 §6, BERT', () => {
  test('figure 13: GET with BERT blocks', () => {
    const client = lone();
    client.request({ method: 'GET', path: '/status' }, 0);
    const whole = body(3072 + 5120 + 4711);
    const sent: CoapMessage[] = [];
    for (const [answer, number, length] of [
      ['2:0/1/BERT', 0, 3072],
      ['2:3/1/BERT', 3, 5120],
      ['2:8/0/BERT', 8, 4711],
    ] as const) {
      const request = next(client)!;
      sent.push(request);
      client.receive(message(CONTENT, [...request.token], [blockOption(answer)], whole.subarray(number * KIB, number * KIB + length)), 0);
    }
    expect(sent.map((each) => `${segments(each).join()} ${shown(each)}`)).toEqual([
      'status 0.01',
      'status 0.01 2:3/0/BERT',
      'status 0.01 2:8/0/BERT',
    ]);
    expect(new Set(sent.map(({ token }) => token.join())).size).toBe(1);
    expect(Buffer.compare(responseOf(client.nextEvent()).response.payload, whole)).toBe(0);
  });

  test('figure 14: PUT with BERT blocks', () => {
    const server = lone();
    const whole = body(8192 + 16_384 + 5683);
    const seen: Uint8Array[] = [];
    const got = (
      [
        ['1:0/1/BERT', 0, 8192],
        ['1:8/1/BERT', 8, 16_384],
        ['1:24/0/BERT', 24, 5683],
      ] as const
    ).map(([option, number, length]) =>
      serve(
        server,
        message(PUT, [8], [...path('options'), blockOption(option)], whole.subarray(number * KIB, number * KIB + length)),
        (payload) => {
          seen.push(payload);
          return { status: 204 };
        },
      ),
    );
    expect(got.map(shown)).toEqual(['2.31 1:0/1/BERT', '2.31 1:8/1/BERT', '2.04 1:24/0/BERT']);
    expect(seen.map((payload) => Buffer.compare(payload, whole))).toEqual([0]);
    expect(got[0]!.code).toBe(CONTINUE);
  });
});

describe('RFC 7641 appendix A.1', () => {
  const temperature = (token: Uint8Array, sequence: number, text: string, etag: number[] = []): Uint8Array => {
    const options = [uintOptionOf(OptionNumber.OBSERVE, sequence), uintOptionOf(OptionNumber.MAX_AGE, 15)];
    if (etag.length > 0) options.push({ number: OptionNumber.ETAG, value: Uint8Array.from(etag) });
    return message(CONTENT, [...token], options, ascii(text));
  };

  test('figure 3: the current state, and a new one upon a change', () => {
    const client = lone();
    const id = client.request({ method: 'GET', path: '/temperature', observe: 0 }, 0);
    const request = next(client)!;
    expect([request.code, segments(request), uint(request, OptionNumber.OBSERVE)]).toEqual([GET, ['temperature'], 0]);
    client.receive(temperature(request.token, 9, '18.5 Cel'), 0);
    client.receive(temperature(request.token, 16, '19.2 Cel'), 0);
    for (const [observe, text] of [
      [9, '18.5 Cel'],
      [16, '19.2 Cel'],
    ] as const)
      expect(client.nextEvent()).toEqual({
        kind: 'response',
        id,
        final: false,
        response: { status: 205, observe, maxAge: 15, payload: ascii(text) },
      });
  });

  test('figure 4: the client registers again after a lost notification', () => {
    let tokens = 0;
    const client = new Exchanges({ randomToken: (length) => new Uint8Array(length).fill(++tokens) });
    const observe = (): Uint8Array => {
      client.request({ method: 'GET', path: '/temperature', observe: 0 }, 0);
      return next(client)!.token;
    };
    const first = observe();
    client.receive(temperature(first, 16, '19.2 Cel'), 0);
    const second = observe();
    expect(second).not.toEqual(first);
    client.receive(temperature(second, 44, '19.7 Cel', [0x78, 0x79, 0x7a, 0x7a, 0x79]), 0);
    const states = [client.nextEvent(), client.nextEvent()].map((event) => responseOf(event).response);
    expect(states.map(({ observe: sequence, payload }) => [sequence, textOf(payload)])).toEqual([
      [16, '19.2 Cel'],
      [44, '19.7 Cel'],
    ]);
  });
});
