/** Peer: `@number0/iroh` without relays and discovery. Its functions take and return arrays of numbers. */
import { Endpoint, EndpointAddr, EndpointId, presetMinimal, RelayMode } from '@number0/iroh';
import { subject } from '../../dist/bench/processes/subject.js';

const ALPN = [...Buffer.from('bench/1')];
const READ = 64 * 1024;

let own = null;

subject({
  async listen(host, accepted) {
    const endpoint = await bound(`${host}:0`);
    void serve(endpoint, accepted);
    return { id: endpoint.id().toString(), sockets: endpoint.boundSockets() };
  },

  async connect({ id, sockets }, received) {
    own ??= bound('0.0.0.0:0');
    const address = new EndpointAddr(EndpointId.fromString(id), null, sockets);
    const connection = await (await own).connect(address, ALPN);
    const stream = await connection.openBi();
    return pipe(connection, stream, () => received);
  },
});

function bound(address) {
  const builder = Endpoint.builder();
  presetMinimal(builder);
  builder.relayMode(RelayMode.disabled());
  builder.alpns([ALPN]);
  builder.bindAddr(address);
  return builder.bind();
}

async function serve(endpoint, accepted) {
  for (;;) {
    const incoming = await endpoint.acceptNext();
    if (incoming === null) return;
    void admit(incoming, accepted);
  }
}

/** Accepts one connection. A stream appears only with its first byte, so connections are admitted concurrently. */
async function admit(incoming, accepted) {
  const connection = await (await incoming.accept()).connect();
  pipe(connection, await connection.acceptBi(), accepted);
}

function pipe(connection, { send, recv }, accepted) {
  const pipe = {
    send: (data) => send.writeAll(Array.from(data)),
    close: () => connection.close(0n, []),
  };
  void pump(recv, accepted(pipe));
  return pipe;
}

async function pump(recv, received) {
  try {
    for (;;) {
      const data = await recv.read(READ);
      if (data.length === 0) return;
      received(Uint8Array.from(data));
    }
  } catch {
    // the connection was closed
  }
}
