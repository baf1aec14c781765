/** How a pairing is handed to a person: as string, as link, and as QR code of the link; and what it says of where the device is. */
import { InvalidArgumentError, Option } from 'commander';
import { encodePairingLink, encodePairingString, formatHostPort, isLinkBase, type PairingString } from '../protocol/records/index.ts';
import { ownAddresses } from '../transport/node/index.ts';
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
    new Option('--qr', 'show the link as QR code also where no terminal is'),
    new Option('--no-qr', 'show no QR code'),
  ];
}

/** Addresses of a host that a pairing names: more would make its QR code large. */
const MAX_ADDRESSES = 3;

/** Where a device on this host is reached on the local network. @param port its local port */
export function ownPlaces(port: number): Pick<PairingString, 'addresses'> {
  const addresses = ownAddresses().slice(0, MAX_ADDRESSES);
  return addresses.length === 0 ? {} : { addresses: addresses.map((host) => formatHostPort({ host, port })) };
}

/** String and link; the QR code goes to standard error, on a terminal or when it is asked for. */
export function share(output: Output, pairing: PairingString, { linkBase, qr }: ShareOptions): { pairingString: string; link: string } {
  const link = encodePairingLink(pairing, linkBase);
  if (qr ?? output.interactive) output.drawing(qrCode(link, { colours: output.interactive }));
  return { pairingString: encodePairingString(pairing), link };
}

function linkBase(text: string): string {
  if (!isLinkBase(text)) throw new InvalidArgumentError('Expected an absolute URL without "#".');
  return text;
}
