/**
 * The actions that `svc device` checks with its access control: those of the SDK's endpoints and tunnels, and its own.
 */
import { iamEndpoints } from '../../device/iam/endpoints/table.ts';

/** Every action, in alphabetical order. */
export function deviceActions(): readonly string[] {
  const endpoints = iamEndpoints.flatMap(({ action, pairing }) => action ?? (pairing === undefined ? [] : `IAM:Pairing${pairing}`));
  const tunnels = ['TcpTunnel', 'UdpTunnel'].flatMap((kind) => ['ListServices', 'GetService', 'Connect'].map((verb) => `${kind}:${verb}`));
  const own = ['Thermostat:Get', 'Thermostat:Set', 'File:Transfer'];
  return [...new Set([...endpoints, ...tunnels, ...own])].sort();
}
