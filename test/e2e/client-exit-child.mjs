/**
 * A program of the client SDK that closes its connections, does not stop its clients, and has nothing else to do.
 * Argument: see client-exit.test.ts.
 */
import { nodeEnvironment, SvcClient } from 'svc-connect/client';

const { options, stationPort } = JSON.parse(process.argv[2]);

function connectionOf(client, more) {
  const connection = client.createConnection();
  connection.updateOptions({ PrivateKey: client.createPrivateKey(), Local: false, ...options, ...more });
  return connection;
}

async function closed(name, connection, ready = async () => {}) {
  await connection.connect();
  await ready(connection);
  const { status } = await connection.get('/hello');
  const { station } = connection.paths();
  console.log(name, status, connection.getType(), station?.over ?? '');
  await connection.close();
}

/** Resolves when it is direct. */
function direct(connection) {
  return new Promise((resolve) => {
    const look = () => connection.getType() === 'DIRECT' && resolve();
    connection.on('path', look);
    look();
  });
}

/** UDP to the base station is dropped. */
function withoutUdp() {
  const environment = nodeEnvironment();
  const { network } = environment;
  const bind = async (given) => {
    const socket = await network.bind(given);
    const { send } = socket;
    socket.send = (buffer, offset, length, path, released) => {
      if (path.port === stationPort) setImmediate(released, offset);
      else send.call(socket, buffer, offset, length, path, released);
    };
    return socket;
  };
  return { ...environment, network: { ...network, bind } };
}

await closed('relay', connectionOf(SvcClient.create(), { Rendezvous: false }));
await closed('direct', connectionOf(SvcClient.create(), {}), direct);
await closed('websocket', connectionOf(SvcClient.create({ environment: withoutUdp() }), { Rendezvous: false }));
// No device answers on the local network for two seconds.
const near = SvcClient.create({ environment: nodeEnvironment({ mdnsInterfaces: ['lo'] }) });
await closed('search', connectionOf(near, { Local: true, Rendezvous: false }));
try {
  await connectionOf(SvcClient.create(), { DeviceId: 'de-none' }).connect();
} catch (error) {
  console.log('failed', error.remoteChannelErrorCode);
}
