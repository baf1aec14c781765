/** Simulations that compute with Node's X25519 in place of noble's: the same keys and the same bytes in virtual time, in a tenth of the real one. */
import { nativeCrypto } from '../../transport/node/crypto.ts';
import { Simulation, type SimulationOptions } from '../../transport/sim/index.ts';

export function nativeSimulation(options: SimulationOptions = {}): Simulation {
  return new Simulation({ crypto: nativeCrypto, ...options });
}
