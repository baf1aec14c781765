/** Commands of a client. Only the requested one is evaluated; its row in `commands.ts` names this bundle. */
import type { Loaders } from '../frame/run.ts';

export const commands: Loaders = {
  pair: async () => (await import('../pair.ts')).pairCommand(),
  connect: async () => (await import('../connect.ts')).connectCommand(),
  devices: async () => (await import('../devices.ts')).devicesCommand(),
  forget: async () => (await import('../devices.ts')).forgetCommand(),
  discover: async () => (await import('../discover.ts')).discoverCommand(),
  status: async () => (await import('../status.ts')).statusCommand(),
  ping: async () => (await import('../ping.ts')).pingCommand(),
  doctor: async () => (await import('../doctor.ts')).doctorCommand(),
  coap: async () => (await import('../coap.ts')).coapCommand(),
  stream: async () => (await import('../stream.ts')).streamCommand(),
  tunnel: async () => (await import('../tunnel.ts')).tunnelCommand(),
  gateway: async () => (await import('../gateway.ts')).gatewayCommand(),
  iam: async () => (await import('../iam/index.ts')).iamCommand(),
  push: async () => (await import('../push.ts')).pushCommand(),
  key: async () => (await import('../key.ts')).keyCommand(),
};
