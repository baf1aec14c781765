/**
 * A base station with another directory, which answers when the test decides: late, in another order, about the past,
 * with a failure, or never. Connects must be handled correctly meanwhile, and pending questions stay bounded.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { type CoapReply, type CoapResponse, Router } from '../../../protocol/coap/index.ts';
import {
  ClientPath,
  CONTENT_FORMAT_CBOR,
  decodeConnectAnswer,
  encodeConnectRequest,
  encodeP2pConnectAnswer,
  StationPath,
} from '../../../protocol/control/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import type { StationSettings } from '../../../server/index.ts';
import type { DeviceIds, Directory, Location } from '../../../server/station/directory.ts';
import type { Presence } from '../../../server/station/presence.ts';
import { ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { RawPeer } from '../../support/fixture/raw-peer.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';

/** A pending question. */
interface Question {
  readonly device: DeviceIds;
  readonly signal: AbortSignal;
  readonly answer: (location: Location | null) => void;
  readonly fail: (error: Error) => void;
}

/** Holds every question until the test answers, or it is aborted. */
class HeldDirectory implements Directory {
  readonly here: Presence;
  readonly questions: Question[] = [];

  constructor(here: Presence) {
    this.here = here;
  }

  locate(device: DeviceIds, { signal }: { readonly signal: AbortSignal }): Promise<Location | null> {
    return new Promise<Location | null>((answer, fail) => {
      this.questions.push({ device, signal, answer, fail });
      signal.onabort = () => fail(new Error('given up'));
    });
  }

  /** Answers with the current state. */
  async answerTruly(question: Question): Promise<void> {
    question.answer(await this.here.locate(question.device));
  }
}

let fixture: ProductFixture;
let station: StationUnderTest;
let directory: HeldDirectory;
let client: RawPeer;
/** How often a device was asked for a route. */
let reached: number;

async function begin(settings: Partial<StationSettings> = {}): Promise<void> {
  fixture = new ProductFixture();
  station = await fixture.station(settings);
  station.directoryOf = (here) => {
    directory = new HeldDirectory(here);
    return directory;
  };
  station.kill();
  await station.start();
  reached = 0;
  client = await opened();
}

beforeEach(() => begin());

const opened = (): Promise<RawPeer> => fixture.raw.opened();

/** Attaches a device that accepts every route. */
async function attached(device = ids): Promise<RawPeer> {
  const peer = await fixture.raw.client();
  await station.register(device, peer.host.fingerprint);
  await peer.open(takesRoutes());
  await peer.attach(device);
  return peer;
}

function takesRoutes(): Router<Session> {
  return new Router<Session>().on('POST', StationPath.P2P_CONNECT, (): CoapReply => {
    reached++;
    return { status: 201, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeP2pConnectAnswer({}) };
  });
}

/** Waits for the n-th question. */
async function question(index = 0): Promise<Question> {
  await fixture.sim.run(() => directory.questions.length > index);
  return directory.questions[index]!;
}

const settled = (answer: Promise<CoapResponse>): Promise<CoapResponse> => fixture.sim.settle(answer);
const stats = (): Readonly<Record<string, number>> => station.basestation.stats();

/** Answers to an observing connect. */
function observe(peer: RawPeer) {
  const seen: { status: number; kind: string }[] = [];
  const payload = encodeConnectRequest({ ...ids, serverKey: 'sk-a', wait: true });
  const { cancel } = peer.channel.observe(
    { method: 'POST', path: ClientPath.CONNECT, contentFormat: CONTENT_FORMAT_CBOR, payload, observe: 0 },
    ({ status, payload: body }) => seen.push({ status, kind: status < 300 ? decodeConnectAnswer(body).kind : 'refused' }),
  );
  return { seen, cancel };
}

describe('a directory that answers late', () => {
  test('may answer two questions in reverse order: each gets its own route', async () => {
    const other = { ...ids, deviceId: 'de-2' };
    await attached();
    await attached(other);
    const [first, second] = [client.connecting(), client.connecting({ deviceId: 'de-2' })];
    await question(1);
    const order: string[] = [];
    void first.then(() => order.push('first'));
    void second.then(() => order.push('second'));
    await directory.answerTruly(directory.questions[1]!);
    expect((await settled(second)).status).toBe(201);
    await directory.answerTruly(directory.questions[0]!);
    expect((await settled(first)).status).toBe(201);
    expect(order).toEqual(['second', 'first']);
    expect([stats().routes, reached]).toEqual([2, 2]);
  });

  test('may answer twice for one device in parallel: two routes, which both count for its rate', { tags: ['slow'] }, async () => {
    await begin({ connectsPerDevice: 2 });
    await attached();
    const answers = [client.connecting(), client.connecting(), client.connecting()];
    await question(2);
    for (const each of directory.questions) await directory.answerTruly(each);
    const statuses = (await fixture.sim.settle(Promise.all(answers))).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([201, 201, 429]);
    expect([stats().routes, reached]).toEqual([2, 2]);
  });

  test('that a device is unknown which attaches afterwards: the client waits, and is then connected', async () => {
    const device = await fixture.raw.client();
    await station.register(ids, device.host.fingerprint);
    const { seen } = observe(client);
    (await question()).answer(null);
    await fixture.sim.run(100);
    expect(stats()).toMatchObject({ waiting: 1, lookups: 0 });
    await device.open(takesRoutes());
    await device.attach();
    await directory.answerTruly(await question(1));
    await fixture.sim.run(100);
    expect(seen.map(({ kind }) => kind)).toEqual(['waiting', 'connected']);
  });
});

describe('a failing directory', () => {
  test.each<[string, (asked: Question) => void]>([
    ['rejects', ({ fail }) => fail(new Error('connection lost'))],
    ['rejects with an error of the catalogue', ({ fail }) => fail(Object.assign(new Error('secret'), { code: 'TIMEOUT' }))],
  ])('that %s: the client may try again, and learns nothing else', async (_what, act) => {
    await attached();
    const waiting = client.connecting();
    act(await question());
    const { status, payload } = await settled(waiting);
    expect([status, new TextDecoder().decode(payload)]).toEqual([503, 'The base station cannot find out where the device is']);
    expect(stats()).toMatchObject({ lookups: 0, routes: 0 });
    const again = client.connecting();
    await directory.answerTruly(await question(1));
    expect((await settled(again)).status).toBe(201);
  });

  test('refuses a client that waited for the device, instead of having it wait for ever', { tags: ['slow'] }, async () => {
    const device = await fixture.raw.client();
    await station.register(ids, device.host.fingerprint);
    const { seen } = observe(client);
    (await question()).answer(null);
    await fixture.sim.run(100);
    await device.open(takesRoutes());
    await device.attach();
    (await question(1)).fail(new Error('connection lost'));
    await fixture.sim.run(100);
    expect(seen).toEqual([
      { status: 201, kind: 'waiting' },
      { status: 503, kind: 'refused' },
    ]);
    expect(stats()).toMatchObject({ waiting: 0, lookups: 0 });
  });
});

describe('while a question is pending', () => {
  test('the client may leave: the question is aborted, and the device is not asked', async () => {
    await attached();
    const waiting = client.connecting().catch((error: { code: string }) => error.code);
    const asked = await question();
    const location = await directory.here.locate(ids);
    await fixture.sim.settle(client.channel.close());
    await fixture.sim.run(100);
    expect([asked.signal.aborted, stats().lookups]).toEqual([true, 0]);
    asked.answer(location);
    await fixture.sim.run(5_000);
    expect(await waiting).toBe('STOPPED');
    expect([reached, stats().routes]).toEqual([0, 0]);
  });

  test('a waiting client may cancel: the device is not asked', async () => {
    const device = await fixture.raw.client();
    await station.register(ids, device.host.fingerprint);
    const { seen, cancel } = observe(client);
    (await question()).answer(null);
    await fixture.sim.run(() => seen.length === 1);
    await device.open(takesRoutes());
    await device.attach();
    const { signal } = await question(1);
    cancel();
    await fixture.sim.run(100);
    expect([signal.aborted, stats().lookups, stats().waiting]).toEqual([true, 0, 0]);
    await fixture.sim.run(5_000);
    expect([reached, stats().routes, seen.length]).toEqual([0, 0, 1]);
  });

  test('the base station may stop: the question is aborted, and its answer is ignored', { tags: ['slow'] }, async () => {
    await attached();
    const waiting = client.connecting().then(
      ({ status }) => status,
      (error: Error & { code: string }) => error.code,
    );
    const asked = await question();
    await fixture.sim.settle(station.basestation.close());
    expect([asked.signal.aborted, stats().lookups]).toEqual([true, 0]);
    asked.answer(await directory.here.locate(ids));
    await fixture.sim.run(5_000);
    expect(await waiting).toBe('CLOSED');
    expect(reached).toBe(0);
  });
});

describe('the limits of pending questions', () => {
  const limits = { lookupsPerAddress: 3, lookups: 6 };

  /** Sends connects of one peer without waiting for answers. */
  function flood(peer: RawPeer, count: number): Promise<CoapResponse>[] {
    return Array.from({ length: count }, () => peer.connecting());
  }

  const statuses = async (answers: Promise<CoapResponse>[]): Promise<number[]> =>
    (await fixture.sim.settle(Promise.all(answers))).map(({ status }) => status);

  test('may be filled by strangers at many addresses: an honest user is refused with a time, and served once those questions end', {
    tags: ['slow'],
  }, async () => {
    await begin(limits);
    await attached();
    const strangers = [...flood(client, 3), ...flood(await opened(), 3)];
    await question(5);
    const honest = await opened();
    const refused = await honest.connect();
    expect([refused.status, refused.maxAge]).toEqual([429, 1]);
    expect(await statuses(strangers)).toEqual(Array(6).fill(503));
    expect(stats().lookups).toBe(0);
    const served = honest.connecting();
    await directory.answerTruly(await question(6));
    expect((await settled(served)).status).toBe(201);
  });

  test('let waiting clients be served one after another', { tags: ['slow'] }, async () => {
    await begin({ lookupsPerAddress: 2, lookups: 2 });
    const device = await fixture.raw.client();
    await station.register(ids, device.host.fingerprint);
    const waiting = [];
    for (let index = 0; index < 4; index++) {
      waiting.push(observe(client));
      (await question(index)).answer(null);
    }
    await fixture.sim.run(100);
    expect(stats().waiting).toBe(4);
    await device.open(takesRoutes());
    await device.attach();
    for (let index = 4; index < 8; index++) await directory.answerTruly(await question(index));
    await fixture.sim.run(100);
    expect(waiting.map(({ seen }) => seen.at(-1)?.kind)).toEqual(Array(4).fill('connected'));
    expect(stats()).toMatchObject({ waiting: 0, lookups: 0 });
  });
});
