/** The entry point for pages, where it differs from that of Node. */
import { expect, test } from 'vitest';
import { SvcClient } from '../../client/browser.ts';

test('a page without an environment gets an error that says what to give', () => {
  const refused = expect.objectContaining({
    code: 'INVALID_ARGUMENT',
    message: 'a page has no environment of its own: call SvcClient.create({ environment }), see docs/sdk.md',
  });
  for (const given of [undefined, {}]) expect(() => SvcClient.create(given as never)).toThrow(refused);
});
