/** A platform whose scrypt is a cheap function, the same at both ends. */

import type { Environment } from '../../platform/environment.ts';
import type { ScryptCost } from '../../protocol/crypto-provider.ts';

const CHEAP: ScryptCost = { N: 16, r: 8, p: 1 };

export function withCheapScrypt({ clock, crypto, network, log, mdns, createCore }: Environment): Environment {
  const cheap: Environment['crypto'] = { ...crypto, scrypt: (password, salt, _, length) => crypto.scrypt(password, salt, CHEAP, length) };
  return { clock, crypto: cheap, network, log, createCore, ...(mdns !== undefined && { mdns }) };
}
