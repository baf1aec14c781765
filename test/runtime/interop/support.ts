/**
 * The cases of the QUIC interop runner need a client that downloads files from a server over a link of the runner's
 * network simulator. Here the server is a device, a file is the bytes of the byte stream on that port, and the link is
 * the simulator's.
 */
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import type { HostConfig } from '../../../runtime/host/index.ts';
import type { Session, Stream } from '../../../runtime/session/index.ts';
import { type LinkOptions, Random, type SimulatedPacket } from '../../../testing/index.ts';
import { openedStream } from '../../support/opened-stream.ts';
import { type Bench, bench } from '../stack/support.ts';

export const KB = 1 << 10;
export const MB = 1 << 20;

/** The runner's `--delay=15ms --bandwidth=10Mbps --queue=25`; 25 packets of 1,200 bytes. */
export const simpleP2p: LinkOptions = { delay: 15, rate: 10e6, queue: 25 * 1200 };
/** The runner's `--burst_to_client=3 --burst_to_server=3`. */
export const bursts: LinkOptions = { ...simpleP2p, longestBurst: 3 };

export interface FileBench extends Bench {
  /** Sizes of the files, by port of the stream. */
  files: readonly number[];
  /** Every datagram that left a host, in order. */
  sent: SimulatedPacket[];
  /** Errors in either host's log. */
  errors: string[];
}

export interface FileBenchOptions {
  seed?: number | string;
  link?: LinkOptions;
  files?: readonly number[];
  device?: Partial<HostConfig>;
  client?: Partial<HostConfig>;
}

/** A device that serves the files, and a client, not yet connected. */
export async function fileBench({
  seed = 1,
  link = simpleP2p,
  files = [KB],
  device = {},
  client = {},
}: FileBenchOptions = {}): Promise<FileBench> {
  const errors: string[] = [];
  const both = await bench({
    seed,
    link,
    log: (host, level, message, fields) => {
      if (level === 'error') errors.push(`${host}: ${message} ${JSON.stringify(fields)}`);
    },
    device: { onSession: (session) => serve(session, files), ...device },
    client,
  });
  const sent: SimulatedPacket[] = [];
  both.simulation.onPacket = (packet) => {
    sent.push(packet);
    return undefined;
  };
  return { ...both, files, sent, errors };
}

/** Downloads one file and compares it with the device's. */
export async function download(session: Session, size: number, port: number): Promise<void> {
  const stream = await openedStream(session, port);
  const closing = stream.close();
  expect(sha256(await stream.readAll(size))).toBe(sha256(fileOf(size, port)));
  // not `rejects`: the runner keeps those promises, and with them the whole simulation, until the test ends
  expect(await stream.read().catch((error: Error) => error)).toMatchObject({ code: 'END_OF_FILE' });
  await closing;
}

/** Connects and downloads every file at once. */
export async function downloadAll(here: FileBench): Promise<Session> {
  const session = await here.connect({ timeout: 60_000 });
  await Promise.all(here.files.map((size, port) => download(session, size, port)));
  return session;
}

/** Expects one connection, no internal error, and a close without error at both ends. */
export async function closesCleanly(here: FileBench, session: Session): Promise<void> {
  const [accepted] = [...here.device.sessions];
  expect(here.device.sessions.size).toBe(1);
  await session.close(0);
  expect(await session.closed).toBeNull();
  expect(await accepted!.closed).toMatchObject({ code: 'CLOSED' });
  expectNoFailure(here);
}

export function expectNoFailure({ device, client, errors }: FileBench): void {
  expect(errors).toEqual([]);
  expect([device.stats(), client.stats()]).toMatchObject([{ failures: 0 }, { failures: 0 }]);
}

/** First bytes of the datagrams of a host, in order. */
export function typesFrom({ sent }: FileBench, host: 'client' | 'device'): number[] {
  return sent.filter(({ from }) => from === host).map(({ data }) => data[0]!);
}

export function sha256(data: Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

export function fileOf(size: number, port: number): Uint8Array {
  return new Random(`file ${port}`).bytes(size);
}

function serve(session: Session, files: readonly number[]): void {
  session.onStream = (incoming) => {
    const size = files[incoming.port];
    if (size === undefined) incoming.refuse();
    else send(incoming.accept(), fileOf(size, incoming.port)).catch(() => {});
  };
}

/** Both directions end: a stream whose end is never read stays open. */
async function send(stream: Stream, file: Uint8Array): Promise<void> {
  await stream.write(file);
  await Promise.all([stream.close(), stream.read().catch(() => {})]);
}
