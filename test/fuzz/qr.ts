/**
 * Pairings of strangers that are shown again as a QR code, after bases of links that makers of products choose: any
 * pairing that decodes is drawn, and any other text is refused before it is drawn.
 */
import { qrCode } from '../../cli/qr.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { decodePairing, encodePairingLink } from '../../protocol/records/index.ts';
import type { Random } from '../../testing/random.ts';
import { chance, hostile, pick } from './mutate.ts';
import type { Target } from './target.ts';

const utf8 = new TextEncoder();
const text = new TextDecoder();
const fingerprint = '0123456789abcdef'.repeat(4);
const host = 'h'.repeat(60);

const pairings = [
  `p=pr-1,d=de-1,pwd=a%2Cb,sct=x,u=user,fp=${fingerprint}`,
  `p=pr-1,d=de-1,s=${host}.example:4433,sf=${fingerprint},sct=${'t'.repeat(64)}`,
  `p=pr-1,d=de-1,a=192.168.1.7:5592;[fe80::1]:5592;${host}:1;${host}:2`,
].map((pairing) => utf8.encode(pairing));
const bases = ['svc://pair', 'https://app.example/pair?x=1', `https://app.example/${'p'.repeat(1000)}`, `https://${'a'.repeat(3000)}`].map(
  (base) => utf8.encode(base),
);
/** Modules on a side of version 40, with the quiet zone. */
const LARGEST = 177 + 8;

function draw(random: Random): void {
  let link: string;
  try {
    const base = text.decode(chance(random, 0.5) ? pick(random, bases) : hostile(random, bases));
    link = encodePairingLink(decodePairing(text.decode(hostile(random, pairings))), base);
  } catch (error) {
    if (!(error instanceof LocalError)) throw error;
    return;
  }
  const lines = qrCode(link);
  const width = lines[0]?.length ?? 0;
  if ((width - 8 - 21) % 4 !== 0 || width > LARGEST || lines.length !== Math.ceil(width / 2)) throw new Error(`drawn ${width} wide`);
  if (lines.some(({ length }) => length !== width)) throw new Error('the lines differ in width');
}

export const qrTarget: Target = { name: 'qr', iterate: draw };
