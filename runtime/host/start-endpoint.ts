/** Creates the endpoint of a host, with its own core. */
import type { Core } from '../../bindings/index.ts';
import type { Environment } from '../../platform/environment.ts';
import type { CryptoProvider } from '../../protocol/crypto-provider.ts';
import { Endpoint } from '../../protocol/endpoint/index.ts';
import type { HostConfig, HostLimits } from './config.ts';
import { defaultParameters } from './defaults.ts';
import type { EngineParts } from './restarting-engine.ts';

/**
 * @param touched called after each call on a connection: the driver has something to do
 * @throws LocalError NOT_IMPLEMENTED (no wasm SIMD here), OUT_OF_MEMORY
 */
export async function startEndpoint(
  environment: Environment,
  config: HostConfig,
  limits: HostLimits,
  resetSecret: Uint8Array,
  touched: () => void,
): Promise<EngineParts> {
  // The host sets the keep-alive of each session.
  const { keepAlive, maxPacketSize = environment.network.maxPacketSize ?? defaultParameters.maxUdpPayload, ...rest } = config;
  const core = await environment.createCore({ maxPacketSize, ...config.core });
  const endpoint = new Endpoint({
    ...rest,
    core,
    crypto: withHashOf(core, environment.crypto),
    parameters: { ...defaultParameters, maxUdpPayload: maxPacketSize, ...config.parameters },
    limits,
    resetSecret,
    touched,
  });
  return { core, endpoint };
}

/**
 * The host's cryptography with the core's hashes: a handshake computes some fifty short hashes, and each costs more to
 * set up with the host's.
 */
function withHashOf({ hash }: Core, crypto: CryptoProvider): CryptoProvider {
  return {
    ...crypto,
    sha256: (...parts) => hash.sha256(...parts),
    hmacSha256: (key, ...parts) => hash.hmacSha256(key, ...parts),
  };
}
