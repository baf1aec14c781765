/** Simulations for tests: the same keys and the same bytes, in virtual time and with less real time. */
import { Core } from '../../bindings/index.ts';
import { nativeCrypto } from '../../platform/node/crypto.ts';
import { Simulation, type SimulationOptions } from '../../testing/index.ts';

/**
 * Linear memory of a host's core, where its configuration does not set it. V8 marks everything after each 64 MiB of
 * such memory.
 */
const CORE_MEMORY = 2 << 20;
/** That of a device or a client, which has the capacity for a thousand connections. */
const LARGE_MEMORY = 3 << 20;
const LARGE = 1_000;

/** Computes with Node's X25519 in place of noble's, in a tenth of the time, and gives hosts small cores. */
export function nativeSimulation(options: SimulationOptions = {}): Simulation {
  return new SmallSimulation({ crypto: nativeCrypto, ...options });
}

class SmallSimulation extends Simulation {
  override host(...given: Parameters<Simulation['host']>): ReturnType<Simulation['host']> {
    const host = super.host(...given);
    host.createCore = async (options) => {
      const isLarge = (options.connections ?? 0) >= LARGE;
      return Core.create({ memory: isLarge ? LARGE_MEMORY : CORE_MEMORY, ...options });
    };
    return host;
  }
}
