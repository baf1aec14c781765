/** Bench process: a client that sends bulk streams and CoAP requests to the bench's device. */
import { type Connection, type Stream, SvcClient } from '../../client/node.ts';
import { CONTENT_FORMAT_CBOR, encodeOpenPairing } from '../../protocol/records/index.ts';
import { serve } from './child.ts';

const SINK = 1;
/** The device's listener that sends without end. */
const SOURCE = 2;
const CHUNK = new Uint8Array(256 * 1024);
/** UDP port without a listener. */
const SILENT = 9;

interface Connect {
  readonly productId: string;
  readonly deviceId: string;
  readonly deviceFingerprint: string;
  /** Either directly to the device, at `host`, default 127.0.0.1 … */
  readonly host?: string;
  readonly localPort?: number;
  /** … or through the base station. */
  readonly station?: {
    readonly port: number;
    readonly fingerprint: string;
    /** Default 127.0.0.1. */
    readonly host?: string;
  };
  readonly sct?: string;
  /** Over a WebSocket, and only over the relay. */
  readonly overWebSocket?: boolean;
}

const client = SvcClient.create();
const connections = new Map<string, Connection>();
/** Endless streams, by name of their connection. */
const uploads = new Map<string, Upload>();
const downloads = new Map<string, { readonly stream: Stream; readonly begun: number }>();

serve({
  /** Connects, and keeps the connection under a name for the other calls. */
  async connect({ name, options }: { name: string; options: Connect }) {
    const connection = client.createConnection();
    connection.updateOptions({
      PrivateKey: client.createPrivateKey(),
      ProductId: options.productId,
      DeviceId: options.deviceId,
      DeviceFingerprint: options.deviceFingerprint,
      // Measures the given way, without a search of the local network beside it.
      Local: false,
      Remote: options.station !== undefined,
      ...(options.station && {
        ServerUrl: `https://${options.station.host ?? '127.0.0.1'}:${options.overWebSocket ? SILENT : options.station.port}`,
        ServerFingerprint: options.station.fingerprint,
      }),
      ...(options.overWebSocket !== undefined && { Rendezvous: false }),
      ...(options.overWebSocket && { ServerWebSocketUrl: `ws://127.0.0.1:${options.station?.port}/svc/v1` }),
      ...(options.sct !== undefined && { ServerConnectToken: options.sct }),
    });
    if (options.localPort !== undefined) {
      connection.enableDirectCandidates();
      connection.addDirectCandidate(options.host ?? '127.0.0.1', options.localPort);
      connection.endOfDirectCandidates();
    }
    await connection.connect();
    connections.set(name, connection);
    return connection.getType();
  },

  /** Becomes a user of a device with open pairing. */
  async pair({ name }: { name: string }) {
    const body = encodeOpenPairing({ username: 'bench', fingerprintName: 'Bench' });
    const { status } = await connectionOf(name).post('/iam/pairing/local-open', body, { format: CONTENT_FORMAT_CBOR });
    if (status !== 201) throw new Error(`status ${status}`);
  },

  /** Returns the milliseconds of one password authentication. */
  async logIn({ name, username, password }: { name: string; username: string; password: string }) {
    const connection = connectionOf(name);
    const start = performance.now();
    await connection.passwordAuthenticate(username, password);
    return performance.now() - start;
  },

  /** Returns megabytes per second, from the first write until the device has acknowledged the end. */
  async stream({ name, bytes }: { name: string; bytes: number }) {
    const stream = connectionOf(name).openStream(SINK);
    await stream.opened;
    const start = performance.now();
    for (let left = bytes; left > 0; left -= CHUNK.length) await stream.write(left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK);
    await stream.close();
    return bytes / 1000 / (performance.now() - start);
  },

  /** Resolves when the stream is open. It continues beside the other calls. */
  async beginUpload({ name }: { name: string }) {
    const stream = connectionOf(name).openStream(SINK);
    await stream.opened;
    uploads.set(name, new Upload(stream));
  },

  /** Ends the upload. Returns megabytes per second that the device received since it began. */
  async endUpload({ name }: { name: string }) {
    const upload = uploads.get(name);
    uploads.delete(name);
    if (!upload) throw new Error(`no upload ${name}`);
    return upload.end();
  },

  /** Downloads without end, beside the other calls. Resolves when the first bytes arrive. */
  async beginDownload({ name }: { name: string }) {
    const stream = connectionOf(name).openStream(SOURCE);
    await stream.opened;
    await stream.read();
    downloads.set(name, { stream, begun: performance.now() });
    void drain(stream);
  },

  /** Ends the download. Returns megabytes per second since it began. */
  endDownload({ name }: { name: string }) {
    const download = downloads.get(name);
    downloads.delete(name);
    if (!download) throw new Error(`no download ${name}`);
    const { stream, begun } = download;
    const rate = stream.stats().bytesRead / 1000 / (performance.now() - begun);
    stream.abort();
    return rate;
  },

  /** Returns the transport to the base station. */
  stationOver: ({ name }: { name: string }) => connectionOf(name).paths().station?.over ?? null,

  /** Returns the round-trip times of GET requests, microseconds, with `flight` of them under way at any time. */
  async requests({ name, count, flight, path = '/figure' }: { name: string; count: number; flight: number; path?: string }) {
    const connection = connectionOf(name);
    const times: number[] = [];
    let begun = 0;
    const lane = async (): Promise<void> => {
      while (begun < count) {
        begun++;
        const start = performance.now();
        const { status } = await connection.get(path);
        times.push((performance.now() - start) * 1000);
        if (status !== 205) throw new Error(`status ${status}`);
      }
    };
    await Promise.all(Array.from({ length: flight }, lane));
    return times;
  },
});

/** Writes until `end` is called. */
class Upload {
  readonly #stream: Stream;
  readonly #start = performance.now();
  readonly #done: Promise<void>;
  #bytes = 0;
  #isEnding = false;

  constructor(stream: Stream) {
    this.#stream = stream;
    this.#done = this.#write();
  }

  async end(): Promise<number> {
    this.#isEnding = true;
    await this.#done;
    return this.#bytes / 1000 / (performance.now() - this.#start);
  }

  async #write(): Promise<void> {
    while (!this.#isEnding) {
      await this.#stream.write(CHUNK);
      this.#bytes += CHUNK.length;
    }
    await this.#stream.close();
  }
}

async function drain(stream: Stream): Promise<void> {
  try {
    while ((await stream.read()).length > 0);
  } catch {
    // The download has ended.
  }
}

function connectionOf(name: string): Connection {
  const connection = connections.get(name);
  if (!connection) throw new Error(`no connection ${name}`);
  return connection;
}
