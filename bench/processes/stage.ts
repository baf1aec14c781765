/** Base station, device and client as three processes, connected directly and through the base station. */
import type { StationSettings } from '../../server/index.ts';
import { type Child, type Start, withDirectory } from './parent.ts';

export interface Stage {
  readonly station: Child;
  readonly device: Child;
  /** Holds the connections `direct` and `relay`. */
  readonly client: Child;
}

const ids = { productId: 'pr-bench', deviceId: 'de-bench' };

/** Runs `work` on the stage; the base station's directory is removed afterwards. */
export function onStage<Result>(start: Start, work: (stage: Stage) => Promise<Result>): Promise<Result> {
  return withDirectory(async (data) => {
    const [station, device, client] = [start('station'), start('device'), start('client')];
    const { localPort, deviceFingerprint, sct, station: address } = await attach(station, device, data);
    await client.call('connect', { name: 'direct', options: { ...ids, deviceFingerprint, localPort } });
    await client.call('connect', { name: 'relay', options: { ...ids, deviceFingerprint, station: address, sct } });
    return work({ station, device, client });
  });
}

interface AttachOptions {
  /** The device is under access control. */
  readonly iam?: boolean;
  /** Settings of the base station. */
  readonly settings?: Partial<StationSettings>;
}

/** Starts a base station that knows the device, and the device attached to it. */
export async function attach(station: Child, device: Child, data: string, { iam = false, settings }: AttachOptions = {}) {
  const { fingerprint: deviceFingerprint, sct } = await device.call<{ fingerprint: string; sct: string }>('identity');
  const address = await station.call<{ port: number; fingerprint: string }>('start', { data, ...ids, deviceFingerprint, settings });
  const { localPort } = await device.call<{ localPort: number }>('start', { ...ids, station: address, iam });
  return { station: address, deviceFingerprint, sct, localPort };
}
