/** A Node or streamx duplex stream as the pipe of the bench, and what servers of `node:net` and `node:tls` share. */

/** @param accepted gets the pipe and gives what takes the data that arrives */
export function nodePipe(stream, accepted) {
  const pipe = {
    send: (data) => (stream.write(data) ? undefined : once(stream, 'drain')),
    close: () => stream.destroy(),
  };
  // A peer that went away is noticed by the end that waits for its answer.
  stream.on('error', () => stream.destroy());
  stream.on('data', accepted(pipe));
  return pipe;
}

/** Resolves at the next event of that name, rejects at an error before it. */
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

/** Listens on a free port of that address. */
export async function listening(host, server) {
  server.listen(0, host);
  await once(server, 'listening');
  return { host, port: server.address().port };
}
