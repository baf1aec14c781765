/** The address at which a command says that it listens. */
import { expect, test } from 'vitest';
import { namingPorts, reachableHost } from '../../cli/frame/listening.ts';
import { ownAddress } from '../../platform/node/index.ts';
import { LocalError, PortInUseError } from '../../protocol/errors/index.ts';

test.each(['::', '0.0.0.0', '0:0:0:0:0:0:0:0'])('the wildcard %s becomes an address that others can use', (host) => {
  expect(reachableHost(host)).toBe(ownAddress());
});

test('any other address is unchanged', () => {
  for (const host of ['::1', '127.0.0.1', '2001:db8::']) expect(reachableHost(host)).toBe(host);
});

test('an error for a port that no option chose, and any other error, is unchanged', async () => {
  const fails = (error: Error) => namingPorts({ '--port': 1 }, () => Promise.reject(error));
  const other = new PortInUseError('UDP', 2);
  await expect(fails(other)).rejects.toBe(other);
  const wrapped = new LocalError('ADDRESS_IN_USE', 'taken', { cause: new PortInUseError('TCP', 1) });
  await expect(fails(wrapped)).rejects.toThrow(/^TCP port 1 is in use: .* --port, .*PORT_IN_USE/);
  const plain = new LocalError('UNKNOWN', 'no');
  await expect(fails(plain)).rejects.toBe(plain);
});
