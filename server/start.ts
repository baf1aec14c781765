/**
 * A whole base station in Node: data directory, UDP and HTTP on one port number, STUN beside them, and its orderly
 * shutdown.
 *
 * UDP is bound first; TCP must get the same number, and with port 0 other numbers are tried until one is free for both.
 * REST is on loopback only, unless it has TLS or is given another address; WebSockets of devices and clients use the
 * address of UDP.
 */
import type { Server } from 'node:https';
import { isIP } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { aLog, type Log } from '../platform/environment.ts';
import { nodeEnvironment } from '../platform/node/index.ts';
import {
  callback,
  checkOptions,
  type Kind,
  nonEmptyText,
  oneOf,
  options as optionsOf,
  orNull,
  plainObject,
  texts,
  whole,
} from '../protocol/arguments.ts';
import type { StunServer } from '../protocol/control/index.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { parseServerUrl } from '../runtime/station/index.ts';
import { ipAllowed, isIpEntry } from './administration/ip-list.ts';
import { Basestation } from './basestation.ts';
import { ClientAddresses, type ProxyHeader, proxyHeaders } from './client-address.ts';
import { provesHost } from './rest/certificate-proof.ts';
import { type CertificateFiles, Certificates } from './rest/certificates.ts';
import { type HttpAddresses, isLoopback, type Listener, listenAt, servesAt } from './rest/listen.ts';
import { restApp } from './rest/server.ts';
import type { OutboundEvent } from './station/outbound-api.ts';
import { checkSettings, defaultSettings, type StationSettings } from './station/settings.ts';
import { checkStun } from './station/stun.ts';
import { serveStatus } from './status-socket.ts';
import { openStationData, type StationData } from './storage/data-directory.ts';
import { type LastStart, readLastStart, rememberStart } from './storage/last-start.ts';
import type { UpgradeOptions } from './websocket/upgrades.ts';

/** Configuration of a base station. */
export interface StartOptions {
  /** Directory of key and database; created when missing. */
  data: string;
  /** UDP and TCP port; 0 = one that is free for both. */
  port: number;
  /** Numeric address of the UDP socket, of WebSockets, and of REST over TLS; default all. */
  host?: string;
  /**
   * `https://host[:port]` where devices reach it, for invitations; remembered. Null forgets it; default: the one of
   * the last start.
   */
  url?: string | null;
  /** Address of REST; default loopback, with TLS that of UDP. */
  httpHost?: string;
  /** PEM files: HTTP over TLS. They are reloaded when they change. */
  tls?: CertificateFiles;
  settings?: Partial<StationSettings>;
  /** Private networks in which the keys of an issuer may be fetched: addresses or prefixes. Default: none. */
  jwksAllow?: readonly string[];
  /**
   * Addresses or prefixes of proxies that name their clients, default none; and the header that they use, default
   * X-Forwarded-For.
   */
  trustedProxies?: readonly string[];
  proxyHeader?: ProxyHeader;
  /** Receives events of pushes. */
  onEvent?: (event: OutboundEvent) => void;
  log: Log;
}

/** A base station with HTTP, as returned by `startBasestation`. */
export interface RunningBasestation {
  readonly port: number;
  /** Full hex. */
  readonly fingerprint: string;
  /** STUN ports, as announced to devices and clients; empty where STUN is off or its port is taken. */
  readonly stun: readonly StunServer[];
  /** The address of REST. */
  readonly http: { readonly host: string; readonly port: number; readonly secure: boolean };
  /** The settings that `svc admin device invite` uses. */
  readonly start: LastStart;
  /** Fires when another base station took the data directory: close this one. The reason is the error that says so. */
  readonly lost: AbortSignal;
  stats(): Readonly<Record<string, number>>;
  /** Reads the files of certificate and key now. Does nothing without TLS; an unusable pair is logged and ignored. */
  reloadCertificates(): Promise<void>;
  /** Says goodbye to devices and clients, stops HTTP, closes the database. Idempotent. */
  close(): Promise<void>;
}

/** Most numbers tried with port 0. */
const PORT_ATTEMPTS = 20;
const LOOPBACK = '127.0.0.1';
const ALL = '::';

const KINDS: Record<keyof StartOptions, Kind> = {
  data: nonEmptyText,
  port: whole(0, 0xffff),
  host: nonEmptyText,
  url: orNull(nonEmptyText),
  httpHost: nonEmptyText,
  tls: optionsOf('tls', { certFile: nonEmptyText, keyFile: nonEmptyText }, ['certFile', 'keyFile']),
  settings: plainObject,
  jwksAllow: texts,
  trustedProxies: texts,
  proxyHeader: oneOf(proxyHeaders),
  onEvent: callback,
  log: aLog,
};

/** Starts a base station. @throws LocalError with one line that names the remedy */
export async function startBasestation(options: StartOptions): Promise<RunningBasestation> {
  checkOptions('a base station', options, KINDS, ['data', 'port', 'log']);
  checkHosts(options);
  checkSettings(options.settings ?? {});
  checkStun({ ...defaultSettings, ...options.settings }, options);
  checkEntries(options.jwksAllow ?? []);
  checkEntries(options.trustedProxies ?? []);
  const environment = nodeEnvironment({ log: options.log });
  const { clock } = environment;
  const certificates = options.tls && (await Certificates.open({ clock, log: options.log, files: options.tls }));
  const data = await openStationData(options.data, environment.crypto);
  try {
    for (let attempt = 1; ; attempt++) {
      const running = await attemptStart(options, environment, data, certificates).catch((error: unknown) => {
        const again = options.port === 0 && attempt < PORT_ATTEMPTS && error instanceof LocalError && error.code === 'PORT_IN_USE';
        if (!again) throw error;
      });
      if (running) return running;
    }
  } catch (error) {
    await data.close();
    throw error;
  }
}

async function attemptStart(
  options: StartOptions,
  environment: ReturnType<typeof nodeEnvironment>,
  data: StationData,
  certificates: Certificates | undefined,
): Promise<RunningBasestation> {
  const { identity, resetSecret, sealer, store } = data;
  const { port, host, settings, log, onEvent, jwksAllow = [] } = options;
  const addresses = httpAddresses(options, certificates !== undefined);
  let opened: Basestation | undefined;
  // Not called before the server listens.
  const current = (): Basestation => opened as Basestation;
  const app = restApp({
    store,
    storageFailed: () => opened?.storageFailed === true,
    station: current,
    wallTime: () => environment.clock.wallTime(),
    log,
    addresses: new ClientAddresses({ trusted: options.trustedProxies ?? [], header: options.proxyHeader ?? 'x-forwarded-for', log }),
    serves: servesAt(addresses.rest),
    webSockets: webSocketsOf(current, environment),
    ...(certificates ? { tls: certificates.pair } : {}),
  });
  const station = await Basestation.open(environment, {
    identity,
    resetSecret,
    store,
    sealer,
    port,
    issuers: { allowPrivate: (address) => ipAllowed(jwksAllow, address) },
    ...(host === undefined ? {} : { host }),
    ...(settings === undefined ? {} : { settings }),
    ...(onEvent === undefined ? {} : { outbound: { onEvent } }),
  });
  opened = station;
  try {
    const secure = certificates !== undefined;
    if (!secure) warnOfClearText(options);
    const listening = await listenAt(app, addresses, station.port);
    certificates?.follow(app.server as unknown as Server);
    const http = { host: addresses.rest ?? LOOPBACK, port: station.port, secure };
    const start = await remember(options, station, certificates);
    const stopStatus = await serveStatus(options.data, log, () => ({ attached: station.devices }));
    return running({ station, app, data, log, http, start, listening, certificates, stopStatus });
  } catch (error) {
    await station.close();
    await app.close();
    throw error;
  }
}

/** The parts of a running base station. */
interface Parts {
  readonly station: Basestation;
  readonly app: FastifyInstance;
  readonly data: StationData;
  readonly log: Log;
  readonly http: RunningBasestation['http'];
  readonly start: LastStart;
  readonly listening: Listener;
  readonly stopStatus: () => void;
  readonly certificates: Certificates | undefined;
}

function running({ station, app, data, log, http, start, listening, certificates, stopStatus }: Parts): RunningBasestation {
  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    log.debug('base station closes', station.stats());
    stopStatus();
    certificates?.close();
    listening.close();
    await Promise.all([station.close(), app.close()]);
    await data.close();
  };
  return {
    port: station.port,
    fingerprint: station.fingerprint,
    stun: station.stunServers,
    http,
    start,
    lost: data.lost,
    stats: () => station.stats(),
    reloadCertificates: async () => certificates?.reload(),
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

/** Stores the settings that invitations use. A full disk does not prevent the start. */
async function remember(
  { data, host, url, log }: StartOptions,
  { port, fingerprint }: Basestation,
  certificates: Certificates | undefined,
) {
  const before = url === undefined ? await readLastStart(data).catch(() => undefined) : undefined;
  const known = url ?? before?.url ?? null;
  const address = known === null ? null : parseServerUrl(known);
  const tlsProves = certificates !== undefined && address !== null && provesHost(certificates.pair.cert, address.host, Date.now());
  const start: LastStart = { fingerprint, port, host: host ?? null, url: known, tlsProves };
  await rememberStart(data, start).catch((error: unknown) =>
    log.warn('svc admin device invite will not know how this base station was started', { error: String(error) }),
  );
  return start;
}

/** The parts of a base station that accept WebSockets. */
function webSocketsOf(station: () => Basestation, { clock, network }: ReturnType<typeof nodeEnvironment>) {
  const webSockets: UpgradeOptions['webSockets'] = {
    accept: (pipe, end, peer) => station().webSockets.accept(pipe, end, peer),
    refused: (address, reason) => station().webSockets.refused(address, reason),
    reserve: (address) => station().webSockets.reserve(address),
  };
  return { webSockets, nextIndex: () => network.nextIndex!(), now: () => clock.now() };
}

function httpAddresses({ host, httpHost }: StartOptions, secure: boolean): HttpAddresses {
  return { rest: httpHost ?? (secure ? (host ?? ALL) : undefined), webSockets: host };
}

function warnOfClearText({ httpHost, log }: StartOptions): void {
  if (httpHost !== undefined && !isLoopback(httpHost))
    log.warn('HTTP without TLS outside this machine: API keys travel in cleartext, give --tls-cert and --tls-key', { host: httpHost });
}

function checkHosts({ host, httpHost }: StartOptions): void {
  for (const each of [host, httpHost]) {
    if (each !== undefined && isIP(each) === 0) throw new LocalError('INVALID_ARGUMENT', `${each} is not a numeric IPv4 or IPv6 address`);
  }
}

function checkEntries(entries: readonly string[]): void {
  for (const entry of entries)
    if (!isIpEntry(entry)) throw new LocalError('INVALID_ARGUMENT', `${entry} is not an IPv4 or IPv6 address or prefix`);
}
