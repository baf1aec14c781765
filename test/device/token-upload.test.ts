/** How the base station gets a device's server connect tokens: how many, how often, and what a refusal does. */
import { hex } from '@scure/base';
import { beforeEach, describe, expect, it, test } from 'vitest';
import { Attacher } from '../../device/attacher.ts';
import type { DeviceEvent } from '../../device/events.ts';
import { TokenUpload } from '../../device/token-upload.ts';
import { ServerConnectTokens } from '../../device/tokens.ts';
import { type CborValue, encode } from '../../protocol/cbor/index.ts';
import { type CoapReply, Router, Status } from '../../protocol/coap/index.ts';
import {
  CONTENT_FORMAT_CBOR,
  DevicePath,
  decodeAttachRequest,
  decodeTokens,
  digestOfTokenHashes,
  digestOfTokens,
} from '../../protocol/control/index.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import { hashSecret } from '../../server/storage/secrets.ts';
import type { Simulation } from '../../testing/index.ts';
import { openStation } from '../runtime/session/support.ts';
import { SessionFixture } from '../support/fixture/sessions.ts';
import { nativeSimulation } from '../support/simulation.ts';

const CREATED: CoapReply = { status: Status.CREATED };

let simulation: Simulation;
let tokens: ServerConnectTokens;
let attacher: Attacher;
let events: DeviceEvent[];
/** Log lines of the device, warnings and above. */
let logged: string[];
/** The base station's answers: fields of an attach answer, and the reply to each upload. */
let answer: Record<string, CborValue>;
let reply: () => CoapReply;
/** Uploaded lists with their times, and the digests that were sent. */
let uploads: { readonly at: number; readonly list: readonly string[] }[];
let shown: (Uint8Array | null)[];
/** Makes the base station end the channel. */
let endChannel: () => void;

beforeEach(async () => {
  simulation = nativeSimulation();
  [tokens, events, logged, uploads, shown, answer] = [new ServerConnectTokens(), [], [], [], [], {}];
  reply = () => CREATED;
  const router = new Router<Session>()
    .on('POST', DevicePath.ATTACH, ({ payload, context }) => {
      shown.push(decodeAttachRequest(payload).tokens);
      endChannel = () => void context.close();
      return { ...CREATED, contentFormat: CONTENT_FORMAT_CBOR, payload: encode({ Status: 0, ...answer }) };
    })
    .on('PUT', DevicePath.SCT, ({ payload }) => {
      uploads.push({ at: simulation.now, list: decodeTokens(payload) });
      return reply();
    });
  const station = await openStation(simulation, 'station', '10.0.0.9', { router });
  const { environment, host } = await new SessionFixture({ sim: simulation }).client({ machine: 'device', addresses: ['10.0.0.1/24'] });
  const log = {
    ...environment.log,
    warn: (text: string) => logged.push(`warn ${text}`),
    info: (text: string) => text !== 'attached' && logged.push(`info ${text}`),
  };
  attacher = new Attacher({
    environment: Object.create(environment, { log: { value: log } }),
    host,
    station: station.address,
    tokens,
    names: { productId: 'pr-a', deviceId: 'de-a', appName: null, appVersion: null },
    onChannel: () => {},
    onEvent: (event) => events.push(event),
  });
});

async function attach(): Promise<void> {
  attacher.start();
  await simulation.run(() => events.includes('ATTACHED'));
}

function change(...list: string[]): void {
  if (tokens.manage(list)) attacher.tokens.changed();
}

const many = (count: number): string[] => Array.from({ length: count }, (_, index) => `token-${index}`);
const lists = (): (readonly string[])[] => uploads.map(({ list }) => list);

describe('the uploaded tokens', () => {
  it('are 100 where the base station gives no limit: the application’s and the oldest first', async () => {
    tokens.manage(many(150));
    tokens.add('application');
    await attach();
    expect(lists()).toEqual([['application', ...many(99)]]);
    expect([tokens.uploaded, tokens.synchronized, tokens.omitted.length]).toEqual([true, false, 51]);
    expect(logged).toEqual([expect.stringMatching(/^warn the base station has no room for all server connect tokens/)]);
  });

  it('are as many as the base station allows', async () => {
    answer = { MaxTokens: 3 };
    tokens.manage(many(5));
    await attach();
    expect(lists()).toEqual([many(3)]);
  });

  it.each([0, 4_096, 2 ** 40])('may be up to 4,096 at a limit of %d', async (most) => {
    answer = { MaxTokens: most };
    tokens.manage(many(5_000));
    await attach();
    expect(lists().map((list) => list.length)).toEqual([Math.min(most, 4_096)]);
  });

  it('change with the base station: all tokens get room again', { tags: ['slow'] }, async () => {
    answer = { MaxTokens: 3 };
    tokens.manage(many(5));
    await attach();
    answer = { MaxTokens: 2_000 };
    endChannel();
    await simulation.run(() => events.filter((event) => event === 'ATTACHED').length === 2);
    expect(lists()).toEqual([many(3), many(5)]);
    expect(tokens.synchronized).toBe(true);
    expect(logged.at(-1)).toBe('info the base station has room for all server connect tokens again');
  });

  it('include an omitted token when an older one is removed', async () => {
    answer = { MaxTokens: 3 };
    tokens.manage(many(4));
    await attach();
    change(...many(4).slice(1));
    await simulation.run(1_000);
    expect(lists().at(-1)).toEqual(many(4).slice(1));
    expect(tokens.synchronized).toBe(true);
  });
});

describe('the list', () => {
  it('is not uploaded when the base station knows it, and uploaded when it does not', async () => {
    answer = { TokensKnown: true };
    tokens.manage(['b', 'a']);
    await attach();
    expect([uploads, tokens.synchronized]).toEqual([[], true]);
    answer = {};
    endChannel();
    await simulation.run(() => events.filter((event) => event === 'ATTACHED').length === 2);
    expect(lists()).toEqual([['b', 'a']]);
  });

  it('is cut and uploaded when it is known and has become too long', async () => {
    answer = { TokensKnown: true, MaxTokens: 3 };
    tokens.manage(many(5));
    await attach();
    expect(lists()).toEqual([many(3)]);
  });

  it('is uploaded when it changes while the attach is under way', async () => {
    answer = { TokensKnown: true };
    tokens.manage(['a']);
    attacher.start();
    await simulation.run(() => shown.length === 1);
    change('a', 'b');
    await simulation.run(1_000);
    expect(lists()).toEqual([['a', 'b']]);
  });

  it('is uploaded a few times, 250 ms apart, at eighty changes in 0.6 s, and the last upload is complete', async () => {
    await attach();
    uploads.length = 0;
    for (let index = 1; index <= 80; index++) {
      change(...many(index));
      await simulation.run(7.5);
    }
    await simulation.run(1_000);
    expect(lists().at(-1)).toEqual(many(80));
    expect(uploads.length).toBeLessThanOrEqual(4);
    for (const [index, { at }] of uploads.entries()) if (index > 0) expect(at - uploads[index - 1]!.at).toBeGreaterThanOrEqual(250);
    expect(events).toEqual(['ATTACHED']);
  });
});

describe('right after an attach', () => {
  it('a change is uploaded without a pause', async () => {
    tokens.manage(['a']);
    await attach();
    change('a', 'b');
    await simulation.run(50);
    expect(lists()).toEqual([['a'], ['a', 'b']]);
  });
});

describe('a refused upload', () => {
  it('is tried again after Max-Age, and ends nothing else', async () => {
    await attach();
    reply = () => ({ status: Status.TOO_MANY_REQUESTS, maxAge: 20 });
    uploads.length = 0;
    change('a');
    await simulation.run(19_000);
    expect(uploads).toHaveLength(1);
    reply = () => CREATED;
    await simulation.run(10_000);
    expect([lists(), tokens.synchronized, events]).toEqual([[['a'], ['a']], true, ['ATTACHED']]);
  });

  it('delays no attach, whatever the reason, and is logged once', async () => {
    reply = () => ({ status: Status.REQUEST_ENTITY_TOO_LARGE });
    tokens.manage(['a']);
    await attach();
    await simulation.run(600_000);
    expect(events).toEqual(['ATTACHED']);
    expect(uploads.length).toBeGreaterThan(10);
    expect(uploads.length).toBeLessThan(200);
    expect(logged).toEqual(['warn the base station did not take the server connect tokens']);
    reply = () => CREATED;
    await simulation.run(60_000);
    expect(tokens.synchronized).toBe(true);
  });

  it.each(['an accepted one', 'another channel'])('is tried again at once after a long row of refusals and %s', async (what) => {
    const refused = (): CoapReply => ({ status: Status.REQUEST_ENTITY_TOO_LARGE });
    reply = refused;
    tokens.manage(['a']);
    await attach();
    await simulation.run(600_000);
    if (what === 'an accepted one') {
      reply = () => CREATED;
      await simulation.run(() => tokens.synchronized, 60_000);
      reply = refused;
      uploads.length = 0;
      change('a', 'b');
    } else {
      uploads.length = 0;
      endChannel();
    }
    await simulation.run(() => uploads.length === 2, 60_000);
    // 250 ms, the first back-off, and the way there and back.
    expect(uploads[1]!.at - uploads[0]!.at).toBeLessThanOrEqual(600);
  });

  it('is not tried again after the channel ends', async () => {
    await attach();
    reply = () => ({ status: Status.TOO_MANY_REQUESTS, maxAge: 3_000 });
    change('a');
    await simulation.run(1_000);
    await simulation.settle(attacher.stop());
    reply = () => CREATED;
    uploads.length = 0;
    await simulation.run(4_000_000);
    expect(uploads).toEqual([]);
    attacher.start();
    await simulation.run(() => tokens.synchronized);
    expect(lists()).toEqual([['a']]);
  });
});

describe('the digest', () => {
  it('is that of the hashes in any order, and equals the base station’s', () => {
    const { crypto } = simulation.host('any');
    const hashes = ['a', 'b', 'c'].map(hashSecret);
    expect(digestOfTokens(['c', 'a', 'b', 'a'], crypto)).toEqual(digestOfTokenHashes(hashes, crypto));
    expect(digestOfTokens(['a', 'b'], crypto)).not.toEqual(digestOfTokens(['a', 'b', 'c'], crypto));
    expect(hex.encode(digestOfTokens(['tokenB', 'tokenA'], crypto))).toBe(
      '95145b982a546b5f5d81e1ae4d4a28af6dd7d6bea4cd8c51647c5d5c2c47e59b',
    );
    expect(hex.encode(digestOfTokens([], crypto))).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  });

  it('is sent at each attach, for the list that the base station should have', { tags: ['slow'] }, async () => {
    const { crypto } = simulation.host('any');
    answer = { MaxTokens: 3 };
    tokens.manage(many(5));
    await attach();
    endChannel();
    await simulation.run(() => events.filter((event) => event === 'ATTACHED').length === 2);
    expect(shown).toEqual([digestOfTokens(many(5), crypto), digestOfTokens(many(3), crypto)]);
  });
});

test('a channel that ends during the attach leaves no upload that is retried forever', async () => {
  tokens.add('x');
  const { environment } = await new SessionFixture({ sim: simulation }).client({ machine: 'other' });
  const upload = new TokenUpload(environment, tokens);
  let requests = 0;
  let isOpen = true;
  const request = async (): Promise<unknown> => {
    if (++requests > 10) throw new Error('it is tried for ever');
    if (!isOpen) throw new LocalError('NOT_CONNECTED', 'the session has ended');
    return { status: Status.TOO_MANY_REQUESTS, payload: new Uint8Array(0) };
  };
  const session = {
    get isOpen() {
      return isOpen;
    },
    request,
  } as unknown as Session;
  await upload.attached(session, upload.show(), {
    kind: 'attached',
    keepAlive: null,
    observedAddress: null,
    maxTokens: null,
    tokensKnown: false,
  } as never);
  isOpen = false;
  await simulation.run(60_000);
  expect(requests).toBe(1);
  tokens.add('y');
  upload.changed();
  await simulation.run(60_000);
  expect(requests).toBe(1);
});
