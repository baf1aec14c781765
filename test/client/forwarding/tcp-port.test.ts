/**
 * A local TCP port on loopback whose connection to the device comes and goes: a scripted session, and a clock that the
 * test advances.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MAX_WAITING, TcpPort, WAIT } from '../../../client/forwarding/node-tcp-port.ts';
import { RemoteError, type SvcError } from '../../../protocol/errors/index.ts';
import { Deferred } from '../../../runtime/deferred.ts';
import type { Session, Stream } from '../../../runtime/session/index.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** A stream that keeps what is written, and sends nothing. */
class ScriptedStream {
  readonly opened: Promise<void>;
  written = '';
  readonly #opening = Deferred.quiet<void>();
  readonly #end = Deferred.quiet<Uint8Array>();

  constructor() {
    this.opened = this.#opening.promise;
  }

  refuse(error: SvcError): void {
    this.#opening.reject(error);
    this.#end.reject(error);
  }

  read(): Promise<Uint8Array> {
    return this.#end.promise;
  }

  async write(data: Uint8Array): Promise<void> {
    this.written += new TextDecoder().decode(data);
  }

  async close(): Promise<void> {}

  stats(): { readonly transport: null } {
    return { transport: null };
  }

  abort(): void {
    this.#end.reject(new RemoteError('STOPPED', 'aborted'));
  }
}

class ScriptedSession {
  isOpen = true;
  restReason: SvcError | null = null;
  readonly opened: ScriptedStream[] = [];
  readonly streams = {
    open: (port: number): Stream => {
      expect(port).toBe(7);
      if (!this.isOpen) throw new RemoteError('NOT_CONNECTED', 'ended');
      const stream = new ScriptedStream();
      this.opened.push(stream);
      return stream as unknown as Stream;
    },
  } as Session['streams'];
}

let clock: ManualClock;
let refused: SvcError[];
let port: TcpPort;
let session: ScriptedSession;
let programs: Socket[];

beforeEach(async () => {
  [clock, refused, programs] = [new ManualClock(), [], []];
  session = new ScriptedSession();
  port = await TcpPort.listen({ clock, port: 0, address: '127.0.0.1', onRefused: (error) => refused.push(error) });
});
afterEach(async () => {
  for (const program of programs) program.destroy();
  await port.close();
});

/** A local program that has sent some bytes. */
async function program(text = 'hello'): Promise<Socket> {
  const socket = connect({ port: port.port, host: '127.0.0.1' });
  programs.push(socket);
  socket.on('error', () => {});
  // A socket that is reset at once may never have opened.
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => {});
  socket.write(text);
  return socket;
}

const until = (condition: () => boolean): Promise<void> => eventually(() => expect(condition()).toBe(true));
const isReset = (socket: Socket): Promise<void> => until(() => socket.destroyed);

describe('without a connection to the device', () => {
  test('local connections wait, and continue with their bytes when it comes', async () => {
    await program('one');
    await program('two');
    await until(() => port.waiting === 2);
    port.attach(session, 7);
    await until(() => session.opened.map(({ written }) => written).join() === 'one,two');
    expect([port.waiting, clock.timers.length]).toEqual([0, 0]);
  });

  test(`each waits ${WAIT / 1000} s, then it is reset and reported`, async () => {
    const early = await program();
    await until(() => port.waiting === 1);
    clock.pass(WAIT - 1);
    await program();
    await until(() => port.waiting === 2);
    clock.pass(1);
    await isReset(early);
    expect(port.waiting).toBe(1);
    expect(refused).toMatchObject([{ code: 'NOT_CONNECTED', message: expect.stringContaining('10 s') }]);
  });

  test(`${MAX_WAITING} wait at a time; one more is reset at once, until a slot is free`, async () => {
    const waiting = await Promise.all(Array.from({ length: MAX_WAITING }, () => program()));
    await until(() => port.waiting === MAX_WAITING);
    await isReset(await program());
    expect(refused).toMatchObject([{ code: 'NOT_CONNECTED', message: expect.stringContaining('64 connections already wait') }]);
    clock.pass(WAIT);
    await Promise.all(waiting.map(isReset));
    await program();
    await until(() => port.waiting === 1);
  });

  test('close resets those that wait', async () => {
    const socket = await program();
    await until(() => port.waiting === 1);
    await port.close();
    await isReset(socket);
    expect([clock.timers.length, refused.length]).toEqual([0, 0]);
  });
});

describe('with a connection to the device', () => {
  test('a connection is carried at once', async () => {
    port.attach(session, 7);
    await program();
    await until(() => session.opened[0]?.written === 'hello');
  });

  test('that rests: new ones wait until it resumes', async () => {
    port.attach(session, 7);
    session.restReason = new RemoteError('TIMEOUT', 'silent');
    await program();
    await until(() => port.waiting === 1);
    session.restReason = null;
    port.resume();
    await until(() => session.opened[0]?.written === 'hello');
  });

  test('that was lost: new ones wait for the next, and none uses the previous one', async () => {
    port.attach(session, 7);
    session.isOpen = false;
    await program();
    await until(() => port.waiting === 1);
    expect(session.opened).toHaveLength(0);
    const next = new ScriptedSession();
    port.attach(next, 7);
    await until(() => next.opened[0]?.written === 'hello');
  });

  test('a refusal by the device is reset and reported; a program that gives up is not', async () => {
    port.attach(session, 7);
    const [first, second] = [await program(), await program()];
    await until(() => session.opened.length === 2);
    session.opened[0]!.refuse(new RemoteError('STOPPED', 'the service refuses connections (ECONNREFUSED)'));
    await isReset(first);
    second.resetAndDestroy();
    expect(refused).toMatchObject([{ message: expect.stringContaining('ECONNREFUSED') }]);
  });

  test('a failure because the connection ended is reset and not reported', async () => {
    port.attach(session, 7);
    const socket = await program();
    await until(() => session.opened.length === 1);
    session.isOpen = false;
    session.opened[0]!.refuse(new RemoteError('CLOSED', 'the device has gone'));
    await isReset(socket);
    expect(refused).toEqual([]);
  });
});
