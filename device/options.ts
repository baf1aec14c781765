/** What a device can be made with, each by the setter of the same name. */
import type { KeepAliveProfile } from '../protocol/keep-alive/index.ts';
import type { Environment } from '../transport/environment.ts';
import type { RendezvousMode, RendezvousOptions } from './rendezvous-options.ts';

/** Everything here can also be given later, by the setter of the same name. */
export interface DeviceOptions {
  /** Where the device runs; default Node. */
  environment?: Environment;
  productId?: string;
  deviceId?: string;
  privateKey?: string;
  serverUrl?: string;
  serverPort?: number;
  serverFingerprint?: string;
  rootCerts?: string;
  serverWebSocketUrl?: string;
  /** The certificate of that WebSocket must be valid. Second argument of `setServerWebSocketUrl`. */
  serverWebSocketVerify?: boolean;
  appName?: string;
  appVersion?: string;
  localPort?: number;
  p2pPort?: number;
  /** False: only reachable straight on the network. */
  basestationAttach?: boolean;
  /** With whom the device looks for direct paths, and what it names for that. Default `anyone`. */
  rendezvous?: RendezvousMode | RendezvousOptions;
  /** How often the channel to the base station is kept alive; default `balanced`. */
  keepAliveProfile?: KeepAliveProfile;
}

/** The setters of a device that its options call. */
interface OptionSetters {
  setProductId(id: string): void;
  setDeviceId(id: string): void;
  setPrivateKey(pem: string): void;
  setServerUrl(url: string): void;
  setServerPort(port: number): void;
  setServerFingerprint(fingerprint: string): void;
  setRootCerts(pem: string): void;
  setServerWebSocketUrl(url: string | null, verify?: boolean): void;
  setAppName(name: string): void;
  setAppVersion(version: string): void;
  setLocalPort(port: number): void;
  setP2pPort(port: number): void;
  setBasestationAttach(attach: boolean): void;
  setRendezvous(rendezvous: RendezvousMode | RendezvousOptions): void;
  setKeepAliveProfile(profile: KeepAliveProfile): void;
}

/** Calls the setter of each option that is given. @throws LocalError as the setters */
export function applyOptions(device: OptionSetters, options: DeviceOptions): void {
  if (options.productId !== undefined) device.setProductId(options.productId);
  if (options.deviceId !== undefined) device.setDeviceId(options.deviceId);
  if (options.privateKey !== undefined) device.setPrivateKey(options.privateKey);
  if (options.serverPort !== undefined) device.setServerPort(options.serverPort);
  if (options.serverUrl !== undefined) device.setServerUrl(options.serverUrl);
  if (options.serverFingerprint !== undefined) device.setServerFingerprint(options.serverFingerprint);
  if (options.rootCerts !== undefined) device.setRootCerts(options.rootCerts);
  if (options.serverWebSocketUrl !== undefined || options.serverWebSocketVerify !== undefined)
    device.setServerWebSocketUrl(options.serverWebSocketUrl ?? null, options.serverWebSocketVerify);
  if (options.appName !== undefined) device.setAppName(options.appName);
  if (options.appVersion !== undefined) device.setAppVersion(options.appVersion);
  if (options.localPort !== undefined) device.setLocalPort(options.localPort);
  if (options.p2pPort !== undefined) device.setP2pPort(options.p2pPort);
  if (options.rendezvous !== undefined) device.setRendezvous(options.rendezvous);
  if (options.keepAliveProfile !== undefined) device.setKeepAliveProfile(options.keepAliveProfile);
  if (options.basestationAttach !== undefined) device.setBasestationAttach(options.basestationAttach);
}
