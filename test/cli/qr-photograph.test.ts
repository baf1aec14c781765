/**
 * The QR code of an invitation fits on a terminal, and an independent decoder reads a photograph of it, taken at an
 * angle.
 */
import jsqr from 'jsqr';
import { describe, expect, test } from 'vitest';
import { qrCode } from '../../cli/qr.ts';
import { decodePairing, encodePairingLink, type PairingString } from '../../protocol/records/index.ts';
import { seededRandom } from '../protocol/coap/pair.ts';
import { type Photograph, photograph } from '../support/photograph.ts';

const invitation: PairingString = {
  productId: 'pr-12345678',
  deviceId: 'de-abcdefgh',
  server: 'station.example.com:4433',
  serverFingerprint: 'fedcba9876543210'.repeat(4),
  password: 'k3XpQ9vTz1Lm',
  sct: 'WbF7yLq2RtVn',
  username: 'caroline',
};
const open: PairingString = {
  productId: 'pr-12345678',
  deviceId: 'de-abcdefgh',
  addresses: ['192.168.1.7:5592'],
  sct: 'WbF7yLq2RtVn',
  fingerprint: '0123456789abcdef'.repeat(4),
};

/** Lines of a small terminal, without one for the prompt. */
const SCREEN = 31;
const SIZE = 440;
/** The decoder inverts a code that is light on dark; this one is not. */
const AS_IT_IS = { inversionAttempts: 'dontInvert' } as const;

test.each([
  ['an invitation', invitation],
  ['an invitation below a link base of a product', invitation, 'https://app.example/pair'],
  ['a device without a base station', open],
])('%s takes at most 31 lines', (_, pairing, base?: string) => {
  expect(qrCode(encodePairingLink(pairing, base)).length).toBeLessThanOrEqual(SCREEN);
});

describe('a photograph', () => {
  const drawn = modules(qrCode(encodePairingLink(invitation), { colours: true }));

  test.each<[string, Photograph['corners'], number]>([
    [
      'from the right',
      [
        [25, 40],
        [395, 75],
        [400, 375],
        [30, 415],
      ],
      10,
    ],
    [
      'from below, turned',
      [
        [95, 35],
        [420, 70],
        [380, 420],
        [20, 350],
      ],
      10,
    ],
    [
      'from far, in the dark',
      [
        [120, 100],
        [330, 115],
        [325, 330],
        [110, 310],
      ],
      12,
    ],
  ])('%s gives the same pairing', (_, corners, noise) => {
    const pixels = photograph(drawn, { corners, size: SIZE, noise, random: unit(seededRandom(20)) });
    expect(decodePairing(jsqr.default(pixels, SIZE, SIZE, AS_IT_IS)?.data ?? '')).toEqual(invitation);
  });
});

/** Rows of modules as on the screen: two to a character. */
function modules(lines: readonly string[]): boolean[][] {
  return lines.flatMap((line) =>
    ['█▀', '█▄'].map((dark) => [...line].filter((cell) => ' █▀▄'.includes(cell)).map((cell) => dark.includes(cell))),
  );
}

function unit(random: (below: number) => number): () => number {
  return () => random(65_536) / 65_536;
}
