/** How a pairing is handed to a person: as string, as link, and as QR code of the link. */
import { InvalidArgumentError, Option } from 'commander';
import { encodePairingLink, encodePairingString, isLinkBase, type PairingString } from '../protocol/records/index.ts';
import type { Output } from './frame/output.ts';
import { qrCode } from './qr.ts';

export interface ShareOptions {
  linkBase?: string;
  qr?: boolean;
}

/** --link-base, --qr and --no-qr. */
export function shareOptions(): Option[] {
  return [
    new Option('--link-base <url>', 'address of the link; the pairing string becomes its fragment (default: svc://pair)').argParser(
      linkBase,
    ),
    new Option('--qr', 'show the link as QR code also where no terminal is'),
    new Option('--no-qr', 'show no QR code'),
  ];
}

/** String and link; the QR code goes to standard error, on a terminal or when it is asked for. */
export function share(output: Output, pairing: PairingString, { linkBase, qr }: ShareOptions): { pairingString: string; link: string } {
  const link = encodePairingLink(pairing, linkBase);
  if (qr ?? output.interactive) output.note(qrCode(link, { colours: output.interactive }).join('\n'));
  return { pairingString: encodePairingString(pairing), link };
}

function linkBase(text: string): string {
  if (!isLinkBase(text)) throw new InvalidArgumentError('Expected an absolute URL without "#".');
  return text;
}
