/**
 * Bench process: our transport without a product: one host that listens or connects, with a pinned key and one pipe per
 * connection.
 *
 * The argument is JSON. `maxPacketSize`: the largest UDP payload, bytes, that probes may find, default 1,452. `over`:
 * kind of the pipe, `stream` (default), or `coap` for echoes only, where each piece sent is a POST and its answer is
 * the echo.
 */

import { nodeEnvironment } from '../../platform/node/index.ts';
import { Router } from '../../protocol/coap/index.ts';
import { Host } from '../../runtime/host/index.ts';
import type { Session, Stream } from '../../runtime/session/index.ts';
import { type Pipe, type Received, subject } from './subject.ts';

interface Address {
  readonly host: string;
  readonly port: number;
  readonly fingerprint: string;
}

const NAME = 'device';
const PORT = 1;
const STREAM_WINDOW = 4 * 1024 * 1024;

const PATH = '/echo';
const CONTENT = 205;

interface Settings {
  readonly maxPacketSize?: number;
  readonly over?: 'stream' | 'coap';
}

const { maxPacketSize, over = 'stream' } = JSON.parse(process.argv[2] ?? '{}') as Settings;
const environment = nodeEnvironment();
/** The host of the connecting end. */
let dialing: Promise<Host> | null = null;

subject<Address>({
  async listen(host, accepted) {
    const listening = await open(host, {
      responder: () => [NAME],
      acceptStreams: true,
      streamWindow: STREAM_WINDOW,
      router: echoes(accepted),
      onSession: (session) => {
        session.onStream = (arriving) => {
          const stream = arriving.accept();
          void pump(stream, accepted(pipe(session, stream)));
        };
      },
    });
    return { host, port: listening.sockets.bound[0]?.port ?? 0, fingerprint: listening.fingerprint };
  },

  async connect({ host: address, port, fingerprint }, received) {
    dialing ??= open();
    const session = await (await dialing).dials.connect({ address, port, name: NAME, pin: fingerprint, firstTimeout: 250 });
    if (over === 'coap') return requests(session, received);
    const stream = session.streams.open(PORT);
    void pump(stream, received);
    return pipe(session, stream);
  },
});

// Compiles the core and binds the socket before the measurement.
dialing = open();

function open(host?: string, more: Partial<Parameters<typeof Host.open>[1]> = {}): Promise<Host> {
  return Host.open(environment, {
    identity: environment.crypto.generateKey(),
    binds: [{ port: 0, ...(host === undefined ? {} : { host }) }],
    ...(maxPacketSize !== undefined && { maxPacketSize }),
    ...more,
  });
}

function pipe(session: Session, stream: Stream): Pipe {
  return { send: (data) => stream.write(data), close: () => void session.close() };
}

/** Sends each piece as a request, whose answer is what arrives. */
function requests(session: Session, received: Received): Pipe {
  const send = async (payload: Uint8Array): Promise<void> => {
    const response = await session.request({ method: 'POST', path: PATH, payload });
    if (response.payload.length > 0) received(response.payload);
  };
  return { send, close: () => void session.close() };
}

/** The other end of `requests`: one pipe per session. What the pipe sends during a request is the answer. */
function echoes(accepted: (pipe: Pipe) => Received): Router<Session> {
  const pipes = new WeakMap<Session, (data: Uint8Array) => Uint8Array>();
  return new Router<Session>().on('POST', PATH, ({ payload, context }) => {
    const answer = pipes.get(context) ?? answering(accepted);
    pipes.set(context, answer);
    return { status: CONTENT, payload: answer(payload) };
  });
}

function answering(accepted: (pipe: Pipe) => Received): (data: Uint8Array) => Uint8Array {
  let sent: Uint8Array = new Uint8Array(0);
  const send = (data: Uint8Array): void => {
    sent = data;
  };
  const received = accepted({ send, close: () => {} });
  return (data) => {
    sent = new Uint8Array(0);
    received(data);
    return sent;
  };
}

/** Passes on arriving data until the stream or its session ends. */
async function pump(stream: Stream, received: Received): Promise<void> {
  try {
    for (;;) received(await stream.read());
  } catch {
    // The stream has ended, or the session was closed.
  }
}
