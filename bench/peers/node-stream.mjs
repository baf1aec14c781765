/**
 * A Node or streamx duplex stream as the pipe of the bench, and code that servers of `node:net` and `node:tls` share.
 */

/** Returns the pipe of a stream. @param accepted receives the pipe, and returns the consumer of arriving data */
export function nodePipe(stream, accepted) {
  const pipe = {
    send: (data) => (stream.write(data) ? undefined : once(stream, 'drain')),
    close: () => stream.destroy(),
  };
  // The end that waits for an answer notices that its peer is gone.
  stream.on('error', () => stream.destroy());
  stream.on('data', accepted(pipe));
  return pipe;
}

/** Resolves at the next event `name`, rejects on an earlier error. */
export function once(emitter, name) {
  return new Promise((resolve, reject) => {
    const done = () => {
      emitter.off('error', failed);
      resolve();
    };
    const failed = (error) => {
      emitter.off(name, done);
      reject(error);
    };
    emitter.once(name, done);
    emitter.once('error', failed);
  });
}

/** Listens on a free port of `host`. */
export async function listening(host, server) {
  server.listen(0, host);
  await once(server, 'listening');
  return { host, port: server.address().port };
}
