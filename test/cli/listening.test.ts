/** What a command says of where it listens. */
import { expect, test } from 'vitest';
import { namingPorts, reachableHost } from '../../cli/frame/listening.ts';
import { LocalError, PortInUseError } from '../../protocol/errors/index.ts';
import { ownAddress } from '../../transport/node/index.ts';

test.each(['::', '0.0.0.0', '0:0:0:0:0:0:0:0'])('all addresses (%s) are one that others can use', (host) => {
  expect(reachableHost(host)).toBe(ownAddress());
});

test('any other address is itself', () => {
  for (const host of ['::1', '127.0.0.1', '2001:db8::']) expect(reachableHost(host)).toBe(host);
});

test('a port that no option chose, and other errors, stay as they are', async () => {
  const fails = (error: Error) => namingPorts({ '--port': 1 }, () => Promise.reject(error));
  const other = new PortInUseError('UDP', 2);
  await expect(fails(other)).rejects.toBe(other);
  const wrapped = new LocalError('ADDRESS_IN_USE', 'taken', { cause: new PortInUseError('TCP', 1) });
  await expect(fails(wrapped)).rejects.toThrow(/^TCP port 1 is in use: .* --port, .*PORT_IN_USE/);
  const plain = new LocalError('UNKNOWN', 'no');
  await expect(fails(plain)).rejects.toBe(plain);
});
