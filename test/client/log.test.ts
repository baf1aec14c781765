/**
 * What a client logs: levels, and the callback beside the environment's log; each client separately.
 */
import { expect, test } from 'vitest';
import { type LogMessage, SvcClient } from '../../client/node.ts';
import { type Log, silentLog, withLog } from '../../platform/environment.ts';
import { ProductFixture } from '../support/fixture/products.ts';

/** A client whose every connection logs `connected` at debug, and one error. */
async function noisyClient(log: Log = silentLog) {
  const fixture = await ProductFixture.withStation();
  await fixture.attached();
  const client = SvcClient.create({ environment: withLog(fixture.sim.host('phone'), log) });
  const connect = async (of = client) => {
    const connection = fixture.connection({}, of);
    const failing = (): void => {
      throw new Error('of the application');
    };
    connection.on('open', failing);
    await fixture.settle(connection.connect());
    connection.off('open', failing);
    await fixture.settle(connection.close());
  };
  return { fixture, client, connect };
}

const failure = {
  level: 'error',
  message: 'listener of open threw',
  fields: { error: expect.stringMatching(/^Error: of the application/) },
};

test('the callback gets messages of its own client only, until it is removed', { tags: ['slow'] }, async () => {
  const { fixture, client, connect } = await noisyClient();
  const messages: LogMessage[] = [];
  client.setLogLevel('error');
  client.setLogCallback((message) => messages.push(message));
  await connect(fixture.client());
  expect(messages).toEqual([]);
  await connect();
  expect(messages).toEqual([failure]);
  client.setLogCallback(null);
  await connect();
  expect(messages).toHaveLength(1);
});

test('a level applies to the callback and to the log of the environment', async () => {
  const lines: string[] = [];
  const note = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  const log: Log = { error: note('error'), warn: note('warn'), info: note('info'), debug: note('debug'), trace: note('trace') };
  const { client, connect } = await noisyClient(log);
  const messages: LogMessage[] = [];
  client.setLogCallback((message) => messages.push(message));
  client.setLogLevel('debug');
  await connect();
  expect(lines).toEqual(['debug connected', 'error listener of open threw']);
  client.setLogLevel('error');
  await connect();
  expect(lines.slice(2)).toEqual(['error listener of open threw']);
  expect(messages.map(({ level, message }) => `${level} ${message}`)).toEqual(lines);
});

test('a callback that fails is logged, and the message still arrives', { tags: ['slow'] }, async () => {
  const lines: string[] = [];
  const { client, connect } = await noisyClient({ ...silentLog, error: (message) => void lines.push(message) });
  client.setLogLevel('error');
  client.setLogCallback(() => {
    throw new Error('full');
  });
  await connect();
  expect(lines).toEqual([failure.message, 'the log callback failed']);
});
