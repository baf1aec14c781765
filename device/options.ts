/** The constructor options of a device. */

import { anEnvironment, type Environment } from '../platform/environment.ts';
import { checkedBySetter, checkOptions, type Kind } from '../protocol/arguments.ts';
import type { KeepAliveProfile } from '../protocol/keep-alive/index.ts';
import type { RendezvousMode, RendezvousOptions } from './rendezvous-options.ts';

/** Each option can also be set later, by the setter of the same name. */
export interface DeviceOptions {
  /** The environment of the device; default Node. */
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
  /** False: reachable only directly, without the base station. */
  basestationAttach?: boolean;
  /** Clients with which the device searches for direct paths, and addresses that it offers. Default `anyone`. */
  rendezvous?: RendezvousMode | RendezvousOptions;
  /** Frequency of the keep-alive of the channel to the base station; default `balanced`. */
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

/** The compiler checks that none is missing. */
const KINDS: Record<keyof DeviceOptions, Kind> = {
  environment: anEnvironment,
  productId: checkedBySetter,
  deviceId: checkedBySetter,
  privateKey: checkedBySetter,
  serverUrl: checkedBySetter,
  serverPort: checkedBySetter,
  serverFingerprint: checkedBySetter,
  rootCerts: checkedBySetter,
  serverWebSocketUrl: checkedBySetter,
  serverWebSocketVerify: checkedBySetter,
  appName: checkedBySetter,
  appVersion: checkedBySetter,
  localPort: checkedBySetter,
  p2pPort: checkedBySetter,
  basestationAttach: checkedBySetter,
  rendezvous: checkedBySetter,
  keepAliveProfile: checkedBySetter,
};

/** @throws LocalError INVALID_ARGUMENT for an option that does not exist, or an environment that is none */
export function checkDeviceOptions(options: DeviceOptions): void {
  checkOptions('a device', options, KINDS);
}

/**
 * Calls the setter of each given option.
 * @throws LocalError as the setters
 */
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
