/** URLs of base stations: the default port, and the explicit port of https, which a URL omits. */
import { expect, test } from 'vitest';
import { parseServerUrl } from '../../../runtime/station/index.ts';

test.each([
  ['https://station', null, 'https://station:4433'],
  ['https://station/', null, 'https://station:4433'],
  ['https://station:', null, 'https://station:4433'],
  ['https://station:4433', 4433, 'https://station:4433'],
  ['https://station:443', 443, 'https://station:443'],
  ['\thttps://station:0443/', 443, 'https://station:443'],
  ['HTTPS:\\\\Station:443', 443, 'https://station:443'],
  ['https://station:80', 80, 'https://station:80'],
  ['https://[2001:db8::443]', null, 'https://[2001:db8::443]:4433'],
  ['https://[2001:db8::1]:443', 443, 'https://[2001:db8::1]:443'],
])('%j', (text, port, origin) => {
  expect(parseServerUrl(text)).toMatchObject({ port, origin });
});
