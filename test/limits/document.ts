/** Collects the limits of all folders, and renders docs/limits.md, without input and output. */
import * as bindings from '../../bindings/limits.ts';
import * as cliDeviceApp from '../../cli/device-app/limits.ts';
import * as cliFrame from '../../cli/frame/limits.ts';
import * as clientConnect from '../../client/connect/limits.ts';
import * as clientForwarding from '../../client/forwarding/node-limits.ts';
import * as clientGateway from '../../client/gateway/limits.ts';
import * as client from '../../client/limits.ts';
import * as clientTunnels from '../../client/tunnels/limits.ts';
import * as deviceAudit from '../../device/audit/limits.ts';
import * as deviceIam from '../../device/iam/limits.ts';
import * as device from '../../device/limits.ts';
import * as devicePassword from '../../device/password/limits.ts';
import * as deviceTunnels from '../../device/tunnels/limits.ts';
import * as platformNode from '../../platform/node/limits.ts';
import * as protocolCoap from '../../protocol/coap/limits.ts';
import * as protocolCoapUdp from '../../protocol/coap-udp/limits.ts';
import * as protocolDiscovery from '../../protocol/discovery/limits.ts';
import * as protocolEndpoint from '../../protocol/endpoint/limits.ts';
import type { Limit, Limits } from '../../protocol/limits.ts';
import * as protocolPortMapping from '../../protocol/port-mapping/limits.ts';
import * as protocolRelay from '../../protocol/relay/limits.ts';
import * as protocolRendezvous from '../../protocol/rendezvous/limits.ts';
import * as runtimeDiscovery from '../../runtime/discovery/limits.ts';
import * as runtimeHost from '../../runtime/host/limits.ts';
import * as runtimePortMapping from '../../runtime/port-mapping/limits.ts';
import * as runtimeRendezvous from '../../runtime/rendezvous/limits.ts';
import * as runtimeSession from '../../runtime/session/limits.ts';
import * as runtimeStation from '../../runtime/station/limits.ts';
import * as runtimeWebsocket from '../../runtime/websocket/limits.ts';
import * as serverAdministration from '../../server/administration/limits.ts';
import * as serverJwt from '../../server/jwt/limits.ts';
import * as server from '../../server/limits.ts';
import * as serverPush from '../../server/push/limits.ts';
import * as serverRest from '../../server/rest/limits.ts';
import * as serverStation from '../../server/station/limits.ts';
import * as serverWebsocket from '../../server/websocket/limits.ts';

/** The exports of a `limits.ts`, by group. */
export type Room = Partial<Record<keyof typeof GROUPS, Limits>>;

/** Every `limits.ts`, in the order of the document. */
export const rooms: Readonly<Record<string, Room>> = {
  'server/station/limits.ts': serverStation,
  'server/limits.ts': server,
  'device/limits.ts': device,
  'client/limits.ts': client,
  'protocol/endpoint/limits.ts': protocolEndpoint,
  'runtime/host/limits.ts': runtimeHost,
  'bindings/limits.ts': bindings,
  'protocol/coap/limits.ts': protocolCoap,
  'protocol/relay/limits.ts': protocolRelay,
  'server/administration/limits.ts': serverAdministration,
  'server/jwt/limits.ts': serverJwt,
  'server/push/limits.ts': serverPush,
  'runtime/websocket/limits.ts': runtimeWebsocket,
  'server/websocket/limits.ts': serverWebsocket,
  'server/rest/limits.ts': serverRest,
  'cli/frame/limits.ts': cliFrame,
  'runtime/station/limits.ts': runtimeStation,
  'runtime/session/limits.ts': runtimeSession,
  'device/tunnels/limits.ts': deviceTunnels,
  'platform/node/limits.ts': platformNode,
  'device/password/limits.ts': devicePassword,
  'device/iam/limits.ts': deviceIam,
  'device/audit/limits.ts': deviceAudit,
  'cli/device-app/limits.ts': cliDeviceApp,
  'protocol/discovery/limits.ts': protocolDiscovery,
  'protocol/rendezvous/limits.ts': protocolRendezvous,
  'runtime/rendezvous/limits.ts': runtimeRendezvous,
  'runtime/port-mapping/limits.ts': runtimePortMapping,
  'protocol/port-mapping/limits.ts': protocolPortMapping,
  'client/gateway/limits.ts': clientGateway,
  'protocol/coap-udp/limits.ts': protocolCoapUdp,
  'client/forwarding/node-limits.ts': clientForwarding,
  'client/tunnels/limits.ts': clientTunnels,
  'runtime/discovery/limits.ts': runtimeDiscovery,
  'client/connect/limits.ts': clientConnect,
};

const GROUPS = {
  both: ['Base station and device'],
  station: ['Base station'],
  device: ['Device'],
  client: [
    'Client and gateway',
    '',
    'The limits on what a client receives in its core and in blocks are those of a device. Only programs that reach the',
    "gateway's port, by default those of its own host, can fill its tables.",
  ],
} as const;

const INTRODUCTION = `<!-- Written by \`npm run limits\` from the files limits.ts of the product: change those. -->

# Limits

Every resource that another party can use up has a limit. In these tables:

- _Address_ means one IPv4 address, or the /64 of an IPv6 address.
- A name in brackets is the setting, option or call that changes the limit (\`StationSettings\`, \`svc basestation\`,
  \`Device\`, \`Iam\`, \`SvcClient\`, \`Gateway\`). A limit without one is fixed.
- BUSY from a device reaches an application as DEVICE_INTERNAL_ERROR; BUSY from the base station reaches a client's
  application as CONNECTION_REFUSED.
- _Makes way_ means that the entry is dropped or closed in favour of the new one.
- _Others keep nothing_ means that no part is reserved for others.
- Resources that a peer can use up only on its own connection, such as paths and connection ids, are not listed.
`;

const HEADER = `| Limit, default (setting) | Who can fill it | What the next honest user gets | Freed when | Test |
| --- | --- | --- | --- | --- |`;

const asList = <T extends number | string>(one: T | readonly T[] = []): readonly T[] => (typeof one === 'object' ? one : [one]);

/** A limit with its name, and lists in place of single values. */
const entry = ([name, limit]: [string, Limit]) => ({
  ...limit,
  name,
  values: asList(limit.value),
  rows: asList(limit.protocol),
  tests: asList(limit.test),
});

export const groups = Object.keys(GROUPS) as (keyof typeof GROUPS)[];

/** All limits of a group, in the order of the document. */
export const limitsOf = (group: keyof typeof GROUPS) =>
  Object.values(rooms).flatMap((room) => Object.entries(room[group] ?? {}).map(entry));

/** Returns docs/limits.md. @throws Error as `row` does */
export function limitsDocument(): string {
  const tables = groups.map((group) => `## ${GROUPS[group].join('\n')}\n\n${HEADER}\n${limitsOf(group).map(row).join('\n')}\n`);
  return [INTRODUCTION, ...tables].join('\n');
}

/** Returns a row of a table. @throws Error when the texts of a limit mention more or fewer numbers than it has */
export function row({ name, values, unit = '#', setting, filledBy, next, freedWhen, tests }: ReturnType<typeof entry>): string {
  const left = [...values];
  const filled = (text: string): string => text.replace(/#([Bs]?)/g, (_, kind: string) => inWords(left.shift() ?? Number.NaN, kind));
  const limited = `${name}: ${filled(unit)}${setting === undefined ? '' : ` (${setting})`}`;
  const paths = tests.map((path) => `\`${path}\``).join(', ');
  const text = `| ${[limited, ...[filledBy, next, freedWhen].map(filled), paths].join(' | ')} |`;
  if (text.includes('NaN') || left.length > 0) throw new Error(`the numbers of a limit are not those that its texts mention: ${text}`);
  return text;
}

/** A number, bytes in KiB or MiB, or ms in seconds or ms. */
function inWords(value: number, kind: string): string {
  const grouped = (number: number): string => number.toLocaleString('en-US');
  if (kind === 's') return value < 1000 ? `${value} ms` : `${grouped(value / 1000)} s`;
  if (kind !== 'B') return grouped(value);
  const units = ['bytes', 'KiB', 'MiB'];
  const power = [2, 1, 0].find((exponent) => value % 1024 ** exponent === 0)!;
  return `${grouped(value / 1024 ** power)} ${units[power]}`;
}
