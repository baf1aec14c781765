/**
 * The parts of one device, built and wired together: log, events, authorization, connections, resources, streams,
 * tunnels, passwords and runtime.
 */

import { type Environment, withLog } from '../platform/environment.ts';
import type { SvcError } from '../protocol/errors/index.ts';
import { Emitter } from '../runtime/emitter.ts';
import { type DatagramLoss, lossText } from '../runtime/session/index.ts';
import type { AccessControl } from './access-control.ts';
import type { DeviceAudit } from './audit/device.ts';
import { Authorization } from './authorization.ts';
import { CoapResources } from './coap-resources.ts';
import { Connections } from './connections.ts';
import type { DeviceEvent } from './events.ts';
import { callerOf, type Denial } from './iam/caller.ts';
import { DeviceLog } from './log.ts';
import { PasswordService } from './password/service.ts';
import { DeviceRuntime } from './runtime.ts';
import { StreamListeners } from './streams.ts';
import { TunnelConcurrencyLimit } from './tunnels/concurrency-limit.ts';
import { connectTcp } from './tunnels/tcp.ts';
import { type TcpTunnelService, Tunnels } from './tunnels/tunnels.ts';
import { UdpTunnels } from './tunnels/udp.ts';

export class DeviceParts {
  readonly environment: Environment;
  readonly log: DeviceLog;
  readonly events: Emitter<{ deviceEvent: { event: DeviceEvent; reason: SvcError | null }; denied: Denial; datagramLoss: DatagramLoss }>;
  readonly authorization: Authorization;
  readonly connections: Connections;
  readonly resources: CoapResources;
  readonly streams: StreamListeners;
  /** TCP and UDP share one limit of connections, and resolve names with the device's network. */
  readonly tunnels: { readonly tcp: Tunnels<TcpTunnelService>; readonly udp: UdpTunnels; readonly concurrency: TunnelConcurrencyLimit };
  readonly passwords: PasswordService;
  readonly runtime: DeviceRuntime;
  accessControl: AccessControl | null = null;
  audit: DeviceAudit | null = null;

  constructor(environment: Environment) {
    this.log = new DeviceLog(environment.log, environment.clock);
    const { log } = this.log;
    const { clock } = environment;
    this.environment = withLog(environment, log);
    this.events = new Emitter(log);
    const { log: tally } = this.log.tally;
    this.authorization = new Authorization({ clock, log: tally }, ({ connection, action, attributes }) =>
      this.events.emit('denied', { caller: callerOf(connection), action, attributes }),
    );
    this.connections = new Connections(tally, clock);
    this.resources = new CoapResources(this.connections, tally, clock, this.authorization);
    this.streams = new StreamListeners(tally);
    const { authorization, streams, resources } = this;
    const resolve = (host: string): Promise<string[]> => this.environment.network.resolve(host);
    const shared = { authorization, streams, resources, resolve, concurrency: new TunnelConcurrencyLimit() };
    this.tunnels = {
      tcp: new Tunnels<TcpTunnelService>({ ...shared, kind: 'TCP', connect: connectTcp, extra: {} }),
      udp: new UdpTunnels(this.environment, shared, (loss) => {
        log.info(lossText(loss, 'clients'), { ...loss });
        this.events.emit('datagramLoss', loss);
      }),
      concurrency: shared.concurrency,
    };
    this.runtime = this.#createRuntime();
    this.passwords = new PasswordService(this.environment, () => this.runtime.passwordIdentity, this.resources);
  }

  #createRuntime(): DeviceRuntime {
    const { environment, resources, streams, connections } = this;
    return new DeviceRuntime({
      environment,
      resources,
      streams,
      connections,
      onEvent: (event, reason) => this.events.emit('deviceEvent', { event, reason }),
      onClose: () => {
        this.log.tally.flush();
        this.tunnels.tcp.close();
        this.tunnels.udp.close();
        this.accessControl?.close();
      },
    });
  }
}
