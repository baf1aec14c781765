/** Networks that block UDP: firewalls in the boxes of homes, and what operators run behind them. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Child } from '../../../bench/processes/parent.ts';
import { fromRoot } from '../../../bench/root.ts';
import { serverPair } from '../../support/certificates.ts';
import type { TestProcess } from '../../support/process.ts';
import type { Namespace } from '../namespaces.ts';
import type { Home } from '../paths/internet.ts';
import type { LabDevice, Products } from '../paths/products.ts';

/** Silently drops matching packets that leave the home. @param rule of nftables, without verdict */
export function firewall({ boxes: [box] }: Home, rule: string): void {
  box!.nft(`table ip company {
    chain forward {
      type filter hook forward priority filter - 1
      iifname "lan" ${rule} drop
    }
  }`);
}

/** Removes the firewall, and counts large outgoing UDP packets. */
export function openFirewall({ boxes: [box] }: Home): void {
  box!.nft(`delete table ip company
  table ip seen {
    counter large { }
    chain forward {
      type filter hook forward priority filter - 1
      iifname "lan" meta l4proto udp ip length > 600 counter name large
    }
  }`);
}

/** The number of those packets. */
export function largeUdpPackets({ boxes: [box] }: Home): number {
  const { nftables } = JSON.parse(box!.run('nft', '-j', 'list', 'counter', 'ip', 'seen', 'large')) as {
    nftables: { counter?: { packets: number } }[];
  };
  return nftables.find(({ counter }) => counter !== undefined)?.counter?.packets ?? 0;
}

/** Files with a self-signed certificate for that address. */
export async function certificateFiles(folder: string, address: string): Promise<{ cert: string; key: string }> {
  const pair = await serverPair(undefined, { names: [address] });
  const [cert, key] = [join(folder, `${address}.pem`), join(folder, `${address}.key`)];
  writeFileSync(cert, pair.cert);
  writeFileSync(key, pair.key, { mode: 0o600 });
  return { cert, key };
}

/** `traffic.mjs` there. */
export function traffic(products: Products, namespace: Namespace): Child {
  return products.child(namespace, { name: 'traffic', script: script('traffic') });
}

/** `client.mjs` there. @param variables of its environment, as `NAME=value` */
export function askingClient(products: Products, namespace: Namespace, ...variables: string[]): Child {
  return products.child(namespace, { name: 'client', script: script('client'), command: ['env', ...variables, process.execPath] });
}

/** A script of this folder. @param name without extension */
export function script(name: string): string {
  return fromRoot(`test/lab/websocket/${name}.mjs`);
}

/** A device that offers the service `echo`. */
export async function echoDevice(products: Products, { host }: Home, name: string, ...options: string[]): Promise<LabDevice> {
  const port = await traffic(products, host).call<number>('listen');
  return products.device(host, name, '--no-mdns', '--tunnel', `echo=tcp:127.0.0.1:${port}`, ...options);
}

/** How a command names a device, with the key of the first client. */
export function targetOf({ folder, keys: [key] }: Products, { name, options }: LabDevice): string[] {
  const state = join(folder, `state-${name}`);
  mkdirSync(state, { recursive: true });
  writeFileSync(join(state, 'key.pem'), key!.pem, { mode: 0o600 });
  const { ServerUrl, ServerFingerprint, ServerConnectToken, ProductId, DeviceId, DeviceFingerprint } = options;
  const station = ['--server', ServerUrl!, '--server-fingerprint', ServerFingerprint!, '--sct', ServerConnectToken!];
  const device = ['--product', ProductId!, '--device-id', DeviceId!, '--fingerprint', DeviceFingerprint!];
  return [...station, ...device, '--state', state, '--no-local'];
}

/** `svc tunnel` to the service `echo`. @returns its port on 127.0.0.1 */
export async function openTunnel(
  products: Products,
  namespace: Namespace,
  target: readonly string[],
): Promise<{ process: TestProcess; port: number }> {
  const process = products.svc(namespace, 'tunnel', 'echo', ...target, '--json');
  const { port } = JSON.parse(await process.line((line) => line.includes('"listening"')));
  return { process, port };
}
