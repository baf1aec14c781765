/** The addresses of a tunnel service: names are resolved once, and not to every address. */
import { describe, expect, test } from 'vitest';
import { mayBeResolved, PinnedAddresses } from '../../../device/tunnels/pinned-address.ts';
import { RemoteError } from '../../../protocol/errors/index.ts';

/** A resolver that returns one answer after the other; an empty one is a failure. */
function resolver(...answers: string[][]) {
  const asked: string[] = [];
  const resolve = async (host: string): Promise<string[]> => {
    asked.push(host);
    const answer = answers.shift() ?? [];
    if (answer.length === 0) throw new RemoteError('DNS', `${host} has no address`);
    return answer;
  };
  return { asked, resolve };
}

describe('a name', () => {
  test('is resolved once, when the service is added, and never again', async () => {
    const { asked, resolve } = resolver(['192.0.2.1', '192.0.2.2'], ['192.0.2.66']);
    const host = new PinnedAddresses('camera.example', resolve);
    expect(asked).toEqual(['camera.example']);
    expect([await host.all(), await host.all()]).toEqual([
      ['192.0.2.1', '192.0.2.2'],
      ['192.0.2.1', '192.0.2.2'],
    ]);
    expect(asked).toHaveLength(1);
  });

  test('leads first to the address that worked last', async () => {
    const host = new PinnedAddresses('a', resolver(['192.0.2.1', '192.0.2.2', '192.0.2.3']).resolve);
    await host.all();
    host.worked('192.0.2.2');
    expect(await host.all()).toEqual(['192.0.2.2', '192.0.2.1', '192.0.2.3']);
    host.worked('192.0.2.3');
    expect(await host.all()).toEqual(['192.0.2.3', '192.0.2.1', '192.0.2.2']);
  });

  test('leads to eight addresses at most', async () => {
    const many = Array.from({ length: 20 }, (_, index) => `192.0.2.${index + 1}`);
    expect(await new PinnedAddresses('a', resolver(many).resolve).all()).toEqual(many.slice(0, 8));
  });

  test('that does not resolve yet is resolved at the next use', async () => {
    const { asked, resolve } = resolver([], [], ['2001:db8::1'], ['192.0.2.66']);
    const host = new PinnedAddresses('camera.example', resolve);
    await expect(host.all()).rejects.toMatchObject({ code: 'DNS' });
    await expect(host.all()).rejects.toMatchObject({ code: 'DNS' });
    expect([await host.all(), await host.all()]).toEqual([['2001:db8::1'], ['2001:db8::1']]);
    expect(asked).toHaveLength(3);
  });

  test('leads to the allowed addresses, or to none', async () => {
    expect(await new PinnedAddresses('a', resolver(['fe80::1', '169.254.169.254', '192.0.2.1']).resolve).all()).toEqual(['192.0.2.1']);
    await expect(new PinnedAddresses('a', resolver(['fe80::1', '169.254.169.254']).resolve).all()).rejects.toMatchObject({
      code: 'DNS',
      message: 'a leads only to addresses that a tunnel service may not have',
    });
  });

  test.each([
    ['127.0.0.1', true],
    ['::1', true],
    ['10.0.0.1', true],
    ['fd00::1', true],
    ['2001:db8::1', true],
    ['64:ff9b::c000:201', true],
    ['169.254.0.1', false],
    ['169.254.169.254', false],
    ['::ffff:169.254.169.254', false],
    ['64:ff9b::a9fe:a9fe', false],
    ['2002:c000:201::1', true],
    ['2002:a9fe:a9fe::1', false],
    ['fe80::1', false],
    ['fe80::1%eth0', false],
    ['febf::1', false],
    ['fd00:ec2::254', false],
    ['fd20:ce::254', false],
    ['fd00:42::42', false],
    ['168.63.129.16', false],
    ['64:ff9b::6464:64c8', false],
    ['100.100.100.200', false],
    ['0.0.0.0', false],
    ['0.1.2.3', false],
    ['::', false],
    ['224.0.0.251', false],
    ['239.255.255.255', false],
    ['255.255.255.255', false],
    ['ff02::fb', false],
    ['garbage', false],
  ])('may lead to %s: %s', (address, expected) => {
    expect(mayBeResolved(address)).toBe(expected);
  });
});

describe('a literal address', () => {
  const { resolve, asked } = resolver();

  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['2001:DB8:0::1', '2001:db8::1'],
    ['169.254.7.7', '169.254.7.7'],
    ['fe80::1%eth0', 'fe80::1%eth0'],
  ])('%s is taken as written, without the resolver', async (host, expected) => {
    expect(await new PinnedAddresses(host, resolve).all()).toEqual([expected]);
    expect(asked).toEqual([]);
  });

  test.each(['0.0.0.0', '::', '224.0.0.1', 'ff02::1', '255.255.255.255'])('%s is refused', (host) => {
    expect(() => new PinnedAddresses(host, resolve)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });
});
