/** Root certificates as PEM, without X.509. */
import { beforeAll, describe, expect, test } from 'vitest';
import { certificateBlocks, checkCertificates } from '../../../protocol/identity/index.ts';
import { authority } from '../../support/certificates.ts';

let one: string;
let two: string;
beforeAll(async () => {
  [one, two] = [(await authority('One')).pem, (await authority('Two')).pem];
});

const refused = (pem: string): string => {
  try {
    return checkCertificates(pem);
  } catch (error) {
    return `${(error as { code: string }).code}: ${(error as Error).message}`;
  }
};

describe('root certificates', () => {
  test('are accepted one or several, with text around them and any line ends', () => {
    const text = `# roots\n${one}\r\n${two.replace(/\n/g, '\r\n')}`;
    expect(checkCertificates(text)).toBe(text);
    expect(certificateBlocks(text)).toHaveLength(2);
    expect(certificateBlocks(`${one}\n${two}`)).toEqual([one.trim(), two.trim()]);
  });

  test.each<[string, () => string, RegExp]>([
    ['nothing', () => '', /no CERTIFICATE block/],
    ['the name of a file', () => '/etc/ssl/root.pem', /no CERTIFICATE block/],
    ['a block without end', () => one.slice(0, -40), /no CERTIFICATE block/],
    ['one of two without end', () => one.slice(0, -40) + two, /something other than whole certificates/],
    ['one beside something else', () => `${one}\n-----BEGIN X509 CRL-----\nMC4=\n-----END X509 CRL-----\n`, /something other/],
    ['no base64', () => one + two.replace(/\n.{4}/, '\n!!!!'), /a certificate is damaged/],
    ['an empty block', () => '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----', /a certificate is damaged/],
    ['a megabyte', () => one.repeat(3000), /longer than 1048576 characters/],
    ['a private key', () => `${one}\n-----BEGIN PRIVATE KEY-----\nMC4=\n-----END PRIVATE KEY-----\n`, /private key among them/],
  ])('that are %s are refused with the reason', (_, pem, problem) => {
    expect(refused(pem())).toMatch(/^INVALID_ARGUMENT: the root certificates cannot be read: /);
    expect(refused(pem())).toMatch(problem);
  });
});
