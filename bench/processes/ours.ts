/**
 * Bench process: our transport without a product around it, one host that listens or connects, pinned key, one byte stream per connection.
 *
 * The argument is JSON: `{ "mtu": 1452 }`, bytes of UDP payload per packet at this end, default 1,200.
 */
import { nodeEnvironment } from '../../transport/node/index.ts';
import { Host, type Session, type SessionStream } from '../../transport/session/index.ts';
import { type Pipe, type Received, subject } from './subject.ts';

interface Address {
  readonly host: string;
  readonly port: number;
  readonly fingerprint: string;
}

const NAME = 'device';
const PORT = 1;
const STREAM_WINDOW = 4 * 1024 * 1024;
const SMALL_PACKET = 1452;

const { mtu = 1200 } = JSON.parse(process.argv[2] ?? '{}') as { mtu?: number };
const environment = nodeEnvironment();
/** The host of the end that connects. */
let dialing: Promise<Host> | null = null;

subject<Address>({
  async listen(host, accepted) {
    const listening = await open(host, {
      responder: () => [NAME],
      acceptStreams: true,
      streamWindow: STREAM_WINDOW,
      onSession: (session) => {
        session.onStream = (arriving) => {
          const stream = arriving.accept();
          void pump(stream, accepted(pipe(session, stream)));
        };
      },
    });
    return { host, port: listening.sockets[0]?.port ?? 0, fingerprint: listening.fingerprint };
  },

  async connect({ host: address, port, fingerprint }, received) {
    dialing ??= open();
    const session = await (await dialing).connect({ address, port, name: NAME, pin: fingerprint, firstTimeout: 250 });
    const stream = await session.openStream(PORT);
    void pump(stream, received);
    return pipe(session, stream);
  },
});

// The core is compiled and the socket bound before anything is measured.
dialing = open();

function open(host?: string, more: Partial<Parameters<typeof Host.open>[1]> = {}): Promise<Host> {
  const large = mtu > SMALL_PACKET;
  return Host.open(environment, {
    identity: environment.crypto.generateKey(),
    binds: [{ port: 0, ...(host === undefined ? {} : { host }) }],
    mtu,
    ...(large && { parameters: { maxUdpPayload: mtu }, core: { maxPacketSize: mtu, memory: 128 << 20 } }),
    ...more,
  });
}

function pipe(session: Session, stream: SessionStream): Pipe {
  return { send: (data) => stream.write(data), close: () => void session.close() };
}

/** Hands over what arrives until the stream or its session ends. */
async function pump(stream: SessionStream, received: Received): Promise<void> {
  try {
    for (;;) received(await stream.readSome());
  } catch {
    // the end of the stream, or of the session that was closed
  }
}
