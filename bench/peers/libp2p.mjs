/** libp2p as a peer: the code that its transports share. */
import { multiaddr } from '@multiformats/multiaddr';
import { createLibp2p } from 'libp2p';
import { subject } from '../../dist/bench/processes/subject.js';

const PROTOCOL = '/bench/1';
/** Raised limits on connections from one address, since the bench opens many, one by one. */
const connectionManager = { maxConnections: 1000, maxIncomingPendingConnections: 1000, inboundConnectionThreshold: 1000 };
const limits = { maxInboundStreams: 1000, maxOutboundStreams: 1000 };

/**
 * @param listenAddress of a host, e.g. '/ip4/127.0.0.1/tcp/0'
 * @param parts the transports, and the parts that they need
 */
export function libp2pSubject(listenAddress, parts) {
  const node = (listen) => createLibp2p({ ...parts, connectionManager, addresses: { listen } });
  let own = null;
  subject({
    async listen(host, accepted) {
      const listening = await node([listenAddress(host)]);
      await listening.handle(PROTOCOL, (stream) => pipe(stream, accepted), limits);
      return listening.getMultiaddrs().map(String);
    },

    async connect([address], received) {
      own ??= node([]);
      const connection = await (await own).dial(multiaddr(address), { force: true });
      const stream = await connection.newStream(PROTOCOL, limits);
      return { ...pipe(stream, () => received), close: () => void connection.close() };
    },
  });
}

function pipe(stream, accepted) {
  const pipe = {
    send: (data) => (stream.send(data) ? undefined : stream.onDrain()),
    close: () => void stream.close(),
  };
  const received = accepted(pipe);
  stream.addEventListener('message', ({ data }) => received(data.subarray()));
  return pipe;
}
