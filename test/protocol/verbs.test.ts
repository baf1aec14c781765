/**
 * The verbs of the parts below the endpoint (ARCHITECTURE.md, "The four verbs"). One driver, which knows none of the
 * parts, runs each through virtual time and fails when a verb breaks its contract.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { decodeMessage, Exchanges, type ExchangesEvent } from '../../protocol/coap/index.ts';
import { Outbox } from '../../protocol/coap/outbox.ts';
import { Requester, type RequesterEvent } from '../../protocol/coap/requester.ts';
import { Responder as CoapResponder, type ResponderEvent } from '../../protocol/coap/responder.ts';
import { Transfers } from '../../protocol/coap/transfers.ts';
import { BlockTransfers, MessageLayer } from '../../protocol/coap-udp/index.ts';
import { encodeDatagram, MessageType } from '../../protocol/coap-udp/message.ts';
import {
  dnsResponse,
  Responder as MdnsResponder,
  Scanner as MdnsScanner,
  SERVICE_TYPE,
  serviceRecords,
} from '../../protocol/discovery/index.ts';
import { Dial } from '../../protocol/endpoint/dial.ts';
import { HalfOpen, HalfOpenTable } from '../../protocol/endpoint/half-open.ts';
import type { HandshakeState } from '../../protocol/noise/index.ts';
import type { Path } from '../../protocol/path.ts';
import { PortMapping } from '../../protocol/port-mapping/index.ts';
import { RouteTable } from '../../protocol/relay/index.ts';
import { nativeHost, nobleAead, seededBytes } from '../support/crypto.ts';
import { EndpointFixture } from '../support/fixture/endpoints.ts';
import { Log, type Part, VirtualDriver } from '../support/verbs.ts';

const EMPTY = new Uint8Array(0);
const LATENCY = 20;
const never = Number.POSITIVE_INFINITY;

function path(name: string): Path {
  return { kind: 'udp', key: name, address: '192.0.2.1', port: 1, socket: 0, local: false };
}

let driver: VirtualDriver;
beforeEach(() => {
  driver = new VirtualDriver();
});

describe('CoAP over a connection', () => {
  /** Answers `/small` and `/large` only. */
  const reply = (target: string) =>
    target === '/nothing' ? null : { status: 205, payload: new Uint8Array(target === '/large' ? 200_000 : 1) };

  test('exchanges', () => {
    const randomToken = seededBytes(1);
    const [client, server] = [new Exchanges({ randomToken }), new Exchanges({ randomToken })];
    const log = new Log<string>();
    driver.add(client, {
      output: (bytes, now) => driver.at(now + LATENCY, () => server.receive(bytes, driver.now)),
      event: (event, now) => log.note(event.kind, now),
    });
    driver.add(server, {
      output: (bytes, now) => driver.at(now + LATENCY, () => client.receive(bytes, driver.now)),
      event: (event: ExchangesEvent, now) => {
        const answer = event.kind === 'request' ? reply(event.request.path) : null;
        if (event.kind === 'request' && answer !== null) server.responder.respond(event.exchange, answer, now);
      },
    });
    for (const target of ['/small', '/large', '/nothing']) client.request({ method: 'GET', path: target }, 0, { timeout: 1000 });
    driver.run(100_000);
    expect(log.entries).toEqual([
      [2 * LATENCY, 'response'],
      // The reply has four blocks.
      [8 * LATENCY, 'response'],
      [1000, 'timeout'],
    ]);
    expect([client.isIdle, client.nextTimeout(), server.nextTimeout()]).toEqual([true, never, never]);
  });

  test('requester and responder without their exchanges', () => {
    const [asked, answered] = [new Outbox(), new Outbox()];
    const requesterEvents: RequesterEvent[] = [];
    const responderEvents: ResponderEvent[] = [];
    const requester = new Requester({
      outbox: asked,
      randomToken: seededBytes(2),
      maxBody: 1 << 20,
      emit: (event) => requesterEvents.push(event),
    });
    const transfers = new Transfers({ maxBody: 1 << 20, maxTransfers: 8, bodyRoom: undefined, transferTimeout: 5000 });
    const responder = new CoapResponder({
      outbox: answered,
      transfers,
      maxRequests: 8,
      criticalOptions: [],
      firstExchange: 1,
      emit: (event) => responderEvents.push(event),
    });
    const log = new Log<string>();
    driver.add(partOf(requester, asked, requesterEvents), {
      // The connection carries the requests and then nothing.
      output: (bytes, now) => {
        if (now === 0) driver.at(now + LATENCY, () => responder.receive(decodeMessage(bytes), driver.now));
      },
      event: (event, now) => log.note(event.kind, now),
    });
    driver.add(partOf(transfers, answered, responderEvents), {
      output: (bytes, now) => driver.at(now + LATENCY, () => requester.receive(decodeMessage(bytes), driver.now)),
      event: (event, now) => {
        const answer = event.kind === 'request' ? reply(event.request.path) : null;
        if (event.kind === 'request' && answer !== null) responder.respond(event.exchange, answer, now);
      },
    });
    for (const target of ['/small', '/large']) requester.request({ method: 'GET', path: target }, 0, 1000);
    driver.run(LATENCY + 4999);
    expect(log.entries).toEqual([
      [2 * LATENCY, 'response'],
      [1000, 'timeout'],
    ]);
    // The rest of the large reply is kept until its timeout.
    expect([transfers.isEmpty, transfers.nextTimeout(), requester.nextTimeout()]).toEqual([false, LATENCY + 5000, never]);
    driver.run(LATENCY + 5000);
    expect([transfers.isEmpty, transfers.nextTimeout()]).toEqual([true, never]);
  });

  function partOf<Event>(part: Part<never, never>, outbox: Outbox, events: Event[]): Part<Uint8Array, Event> {
    return {
      nextTimeout: () => part.nextTimeout(),
      handleTimeout: (now) => part.handleTimeout(now),
      transmit: () => outbox.take(),
      nextEvent: () => events.shift() ?? null,
    };
  }
});

describe('CoAP over UDP', () => {
  const message = (code: number, payload = EMPTY) => ({ code, token: new Uint8Array([1]), options: [], payload });

  test('the message layer acknowledges, repeats with doubling pauses, and reports the outcome of a message', () => {
    const layer = new MessageLayer(() => 0);
    const sent = new Log<number>();
    const events = new Log<string>();
    driver.add(layer, {
      output: ({ bytes }, now) => sent.note(bytes[0]! >> 4, now),
      event: (event, now) => {
        events.note(event.kind, now);
        if (event.kind === 'request') driver.at(now + 800, () => layer.respond(event.request, message(69), driver.now));
      },
    });
    driver.at(100, () => layer.receive(encodeDatagram(MessageType.CONFIRMABLE, 7, message(1)), path('a'), driver.now));
    driver.at(10_000, () => layer.send(path('a'), message(69), { confirmable: true, reported: true }, driver.now));
    driver.run(200_000);
    const [confirmable, acknowledgement] = [0x4, 0x6];
    expect(sent.entries.map(([at, type]) => [at, type & 0xf])).toEqual([
      [600, acknowledgement],
      ...[900, 2900, 6900].map((at) => [at, confirmable]),
      [10_000, confirmable],
      [12_000, confirmable],
      [14_900, confirmable],
      [16_000, confirmable],
      [24_000, confirmable],
      [30_900, confirmable],
      [40_000, confirmable],
    ]);
    // The unreported answer was given up at 62,900.
    expect(events.entries).toEqual([
      [100, 'request'],
      [72_000, 'delivery'],
    ]);
    expect(layer.nextTimeout()).toBe(never);
  });

  test('bodies in blocks are given up one after another', () => {
    const transfers = new BlockTransfers(() => 0);
    driver.add(transfers);
    for (const [at, peer] of [
      [0, 'a'],
      [1000, 'b'],
    ] as const) {
      driver.at(at, () => {
        const taken = transfers.take(peer, message(1), driver.now);
        if ('answer' in taken) throw new Error('a GET is a whole request');
        transfers.reply(taken.request, { status: 205, payload: new Uint8Array(5000) }, driver.now);
      });
    }
    driver.run(1000);
    const [first, second] = [transfers.nextTimeout(), transfers.nextTimeout() + 1000];
    expect(first).toBeLessThan(never);
    driver.run(first);
    expect(transfers.nextTimeout()).toBe(second);
    driver.run(second);
    expect(transfers.nextTimeout()).toBe(never);
  });
});

test('the mDNS responder probes, announces, answers and reports a conflict', () => {
  const service = (addresses: string[]) => serviceRecords({ name: 'pr-1-de-1', port: 5592, subtypes: [], txt: [], addresses });
  const responder = new MdnsResponder(service(['192.0.2.1']), () => 0.5, 0);
  const sent = new Log<boolean>();
  const events = new Log<string>();
  driver.add(responder, {
    output: ({ message }, now) => sent.note(message.response, now),
    event: ({ kind }, now) => events.note(kind, now),
  });
  const foreign = service(['192.0.2.77']).filter(({ type }) => type === 'A');
  const heard = (at: number) =>
    driver.at(at, () => {
      const message = { id: 0, response: true, truncated: false, questions: [], answers: foreign, authorities: [], additionals: [] };
      responder.receive(message, { address: '192.0.2.77', port: 5353 }, driver.now);
    });
  for (const at of [5000, 6000]) heard(at);
  driver.at(7000, () => responder.setRecords(service(['192.0.2.2']), driver.now));
  driver.run(100_000);
  expect(sent.entries).toEqual([
    ...[125, 375, 625].map((at) => [at, false]),
    ...[875, 1875].map((at) => [at, true]),
    ...[7000, 8000].map((at) => [at, true]),
  ]);
  expect(events.entries).toEqual([[5000, 'conflict']]);
  expect(responder.nextTimeout()).toBe(never);
});

test('the mDNS scanner queries, repeats, reports a device, queries it again and reports its end', () => {
  const scanner = new MdnsScanner(() => 0.5, 1);
  const sent = new Log<string>();
  const events = new Log<boolean>();
  driver.add(scanner, {
    output: ({ message }, now) => sent.note(message.questions.map(({ type }) => type).join(), now),
    event: ({ service }, now) => events.note(service !== null, now),
  });
  const answers = serviceRecords({ name: 'pr-1-de-1', port: 5592, subtypes: [], txt: [], addresses: ['192.0.2.1'] });
  driver.at(0, () => scanner.browse(SERVICE_TYPE, driver.now));
  driver.at(200_000, () => scanner.receive(dnsResponse({ answers }), { address: '192.0.2.1', port: 5353 }, driver.now));
  driver.run(400_000);
  expect(sent.entries).toEqual([
    ...[70, 1070, 3070, 7070, 15_070, 31_070, 63_070, 127_070, 255_070].map((at) => [at, 'PTR']),
    [297_200, 'PTR'],
    [303_200, 'SRV,TXT,A'],
    [303_200, 'PTR'],
    [309_200, 'SRV,TXT,A'],
    [309_200, 'PTR'],
    [315_200, 'SRV,TXT,A'],
    [315_200, 'PTR'],
  ]);
  expect(events.entries).toEqual([
    [200_000, true],
    [320_000, false],
  ]);
  expect(scanner.nextTimeout()).toBe(511_070);
});

describe('handshakes', () => {
  const initiates = [0, 500, 1500, 3500, 5500, 7500, 9500];

  test('a dial repeats its Initiate until the deadline', () => {
    const crypto = nativeHost(1);
    const options = { name: 'device:p.d', deadline: 10_000 };
    const parts = { crypto, aead: nobleAead, identity: crypto.generateKey(), id: new Uint8Array(8), path: path('a') };
    const dial = new Dial({ ...parts, options, firstTimeout: 500, now: 0 });
    const sent = new Log<Uint8Array>();
    const events = new Log<string>();
    driver.add(dial, { output: sent.note, event: ({ kind }, now) => events.note(kind, now) });
    driver.run(100_000);
    expect(sent.entries.map(([at]) => at)).toEqual(initiates);
    expect(events.entries).toEqual([[10_000, 'timeout']]);
    expect(dial.nextTimeout()).toBe(never);
  });

  test('an endpoint does the same', () => {
    const { endpoint } = new EndpointFixture(1).client();
    const sent = new Log<Path>();
    const events = new Log<string>();
    driver.add(endpoint, {
      output: (batch, now) => {
        sent.note(batch.path, now);
        for (let i = 0; i < batch.count; i++) batch.release(batch.offsets[i]!);
      },
      event: (event, now) => {
        if (event.kind !== 'active') throw new Error(event.kind);
        for (let inner = event.connection.nextEvent(); inner !== null; inner = event.connection.nextEvent()) events.note(inner.kind, now);
      },
    });
    endpoint.connect({ path: path('a'), name: 'device:p.d', deadline: 10_000 }, 0);
    driver.run(100_000);
    expect(sent.entries.map(([at]) => at)).toEqual(initiates);
    expect(events.entries).toEqual([[10_000, 'failed']]);
    expect(endpoint.nextTimeout()).toBe(never);
  });

  test('half-open handshakes last 10 s from the last packet and a minute in all', () => {
    const removed = new Log<string>();
    const table = new HalfOpenTable((entry) => removed.note(entry.fields.path.key, driver.now));
    driver.add(table);
    const begin = (name: string, at: number, touches: readonly number[]): void => {
      const handshake = {} as HandshakeState;
      const fields = {
        path: path(name),
        remoteId: EMPTY,
        message: EMPTY,
        version: 1,
        suite: 1,
        handshake,
        validated: false,
        createdAt: at,
      };
      const entry = new HalfOpen(new Uint8Array(8), fields, 1200);
      driver.at(at, () => table.add(entry));
      for (const time of touches) driver.at(time, () => table.touch(entry, time));
    };
    begin('silent', 0, []);
    begin('busy', 0, [5000, 14_000, 23_000, 32_000, 41_000, 50_000, 59_500]);
    begin('late', 51_000, [59_000]);
    driver.run(100_000);
    expect(removed.entries).toEqual([
      [10_000, 'silent'],
      [60_000, 'busy'],
      [69_000, 'late'],
    ]);
    expect([table.size, table.nextTimeout()]).toEqual([0, never]);
  });
});

test('the route table ends idle routes, at most half the idle timeout late', () => {
  const table = new RouteTable(nativeHost(2), new Uint8Array(32), { idleTimeout: 1000 }, 0);
  const ended = new Log<string>();
  driver.add(table, {
    event: ({ end }, now) => ended.note([end, end.other].map(({ channel }) => channel.paths.validated.key).sort()[0]!, now),
  });
  const open = (at: number, name: string): void =>
    driver.at(
      at,
      () => void table.open({ paths: { validated: path(name) } }, { paths: { validated: path(`${name}, other end`) } }, driver.now),
    );
  for (const at of [0, 100, 700, 5000]) open(at, `route ${at}`);
  driver.run(100_000);
  expect(ended.entries).toEqual([
    [1000, 'route 0'],
    [1500, 'route 100'],
    [2000, 'route 700'],
    [6000, 'route 5000'],
  ]);
  expect(table.nextTimeout()).toBe(never);
});

test('a port mapping is requested, falls back, pauses, is held, renewed, ended and deleted', () => {
  const mapping = new PortMapping({ internalPort: 5000, client: Uint8Array.of(192, 168, 1, 7), nonce: new Uint8Array(12) }, 0);
  const sent = new Log<string>();
  const events = new Log<string>();
  let answers = false;
  const answer = (request: Uint8Array): Uint8Array => {
    if (request.length === 2) return Uint8Array.of(0, 128, 0, 0, 0, 0, 0, driver.now / 1000, 11, 22, 33, 44);
    return Uint8Array.of(0, 129, 0, 0, 0, 0, 0, driver.now / 1000, ...request.subarray(4, 6), 5, 5, 0, 0, 0, request[11]! === 0 ? 0 : 100);
  };
  driver.add(mapping, {
    output: (request, now) => {
      sent.note(request[0] === 2 ? 'PCP' : request.length === 2 ? 'address' : request[11] === 0 ? 'delete' : 'map', now);
      if (answers && request[0] === 0) driver.at(now + LATENCY, () => mapping.receive(answer(request), driver.now));
    },
    event: ({ kind }, now) => events.note(kind, now),
  });
  driver.run(900_000);
  expect(sent.entries.splice(0)).toEqual([
    ...[0, 3000, 9000].map((at) => [at, 'PCP']),
    ...[21_000, 21_250, 21_750, 22_750, 24_750].map((at) => [at, 'address']),
  ]);
  expect(events.entries.splice(0)).toEqual([[28_750, 'refused']]);
  answers = true;
  // After half of 100 s, then after half of the rest without an answer, and so on until the end of its lifetime.
  driver.at(960_000, () => {
    answers = false;
  });
  driver.run(1_060_000);
  const begin = 28_750 + 900_000 + 21_000;
  const held = begin + 2 * LATENCY;
  const renewals = [held + 50_000, held + 75_000, held + 87_500, held + 93_750, held + 97_750];
  expect(sent.entries.splice(0)).toEqual([
    ...[0, 3000, 9000].map((at) => [928_750 + at, 'PCP']),
    [begin, 'address'],
    [begin + LATENCY, 'map'],
    ...renewals.map((at) => [at, 'address']),
    ...[0, 3000, 9000].map((at) => [held + 100_000 + at, 'PCP']),
  ]);
  expect(events.entries.splice(0)).toEqual([
    [held, 'mapped'],
    [held + 100_000, 'lost'],
  ]);
  driver.at(1_060_000, () => mapping.close(driver.now));
  driver.run(2_000_000);
  expect(sent.entries.length).toBe(3);
  expect(events.entries).toEqual([[1_060_750, 'closed']]);
  expect(mapping.nextTimeout()).toBe(never);
});

describe('the driver finds', () => {
  const quiet: Part<never, never> = { nextTimeout: () => never, handleTimeout: () => {} };

  test('a timeout that remains after it was handled', () => {
    driver.add({ ...quiet, nextTimeout: () => 5 });
    driver.run(4);
    expect(() => driver.run(10)).toThrow('handled its timeout at 5, and wants to be called at 5');
  });

  test('a timeout that is not a number', () => {
    driver.add({ ...quiet, nextTimeout: () => Number.NaN });
    expect(() => driver.run(10)).toThrow('nextTimeout is no number');
  });

  test('endless outputs and events', () => {
    for (const endless of [
      { ...quiet, transmit: () => 1 },
      { ...quiet, nextEvent: () => 1 },
    ]) {
      driver.add(endless);
      expect(() => driver.run(10)).toThrow('come to no end');
    }
  });

  test('a part that acts before its time', () => {
    const events: string[] = [];
    driver.add({ nextTimeout: () => 8, handleTimeout: () => void events.push('early'), nextEvent: () => events.shift() ?? null });
    expect(() => driver.run(20)).toThrow('acted at 4, before its time 8');
  });
});
