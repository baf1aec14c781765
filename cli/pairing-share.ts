/** Hands a pairing to a person: as string, as link, and as QR code of the link; with the place of the device. */
import { InvalidArgumentError, Option } from 'commander';
import { ownAddresses } from '../platform/node/index.ts';
import { encodePairingLink, encodePairingString, formatHostPort, isLinkBase, type PairingString } from '../protocol/records/index.ts';
import type { Output } from './frame/output.ts';
import { qrCode } from './qr.ts';

export interface ShareOptions {
  linkBase?: string;
  qr?: boolean;
}

/** --link-base, --qr and --no-qr. */
export function shareOptions(): Option[] {
  return [
    new Option('--link-base <url>', 'address of the link; the pairing becomes its fragment (default: svc://pair)').argParser(linkBase),
    new Option('--qr', 'show the link as QR code also without a terminal'),
    new Option('--no-qr', 'show no QR code'),
  ];
}

/** Most addresses of a host in a pairing: more would make its QR code large. */
const MAX_ADDRESSES = 3;

/** Addresses of a device on this host in the local network. @param port its local port */
export function ownPlaces(port: number): Pick<PairingString, 'addresses'> {
  const addresses = ownAddresses().slice(0, MAX_ADDRESSES);
  return addresses.length === 0 ? {} : { addresses: addresses.map((host) => formatHostPort({ host, port })) };
}

/** Returns string and link; prints the QR code to standard error, at a terminal or on request. */
export function share(output: Output, pairing: PairingString, { linkBase, qr }: ShareOptions): { pairingString: string; link: string } {
  const link = encodePairingLink(pairing, linkBase);
  if (qr ?? output.interactive) output.drawing(qrCode(link, { colours: output.interactive }));
  return { pairingString: encodePairingString(pairing), link };
}

function linkBase(text: string): string {
  if (!isLinkBase(text)) throw new InvalidArgumentError('Expected an absolute URL without "#", of at most 1,024 characters.');
  return text;
}
