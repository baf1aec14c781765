/**
 * A small stand-in for the core, so that endpoint and connection are tested apart from the data plane and can be given its failures. The
 * same calls and events, frames as JSON in sealed Data packets, a fixed retransmission timer, no congestion control. Not fast, not complete:
 * key update, skipped numbers and packet size probing are missing.
 */
import { EventKind } from '../../bindings/codes.generated.ts';
import type { Core, CoreConnection, CoreConnectionOptions } from '../../bindings/index.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { nobleAead } from './crypto.ts';

const SLOT = 1600;
const SLOTS = 64;
const HEADROOM = 16;
const HEADER = 13;
const RTO = 200;
const CHUNK = 400;
const R = 66_560;

type Frame =
  | { t: 'ack'; pns: number[] }
  | { t: 'stream'; id: number; at: number; data: string; fin: boolean }
  | { t: 'message'; id: number; at: number; length: number; data: string }
  | { t: 'reset' | 'stop'; id: number; code: number }
  | { t: 'max'; id: number; value: number }
  | { t: 'datagram'; data: string }
  | { t: 'close'; code: number; reason: string }
  | { t: 'ping' };

export class FakeCore {
  readonly aead = nobleAead;
  readonly buffer = new Uint8Array(SLOT * SLOTS);
  readonly packetOffsets = new Uint32Array(32);
  readonly packetLengths = new Uint32Array(32);
  readonly free = Array.from({ length: SLOTS }, (_, index) => index * SLOT);
  failed = false;
  slots: number;
  opened = 0;

  constructor(slots = 64) {
    this.slots = slots;
  }

  /** A core that traps: every call fails from now on. */
  trap(): void {
    this.failed = true;
  }

  check(): void {
    if (this.failed) throw new LocalError('CORE_FAILED', 'trap at 1:1');
  }

  release(offset: number): void {
    this.free.push(Math.floor(offset / SLOT) * SLOT);
  }

  open(options: CoreConnectionOptions): FakeConnection {
    this.check();
    if (this.opened >= this.slots) throw new LocalError('OUT_OF_MEMORY', 'no connection slot is left');
    this.opened++;
    return new FakeConnection(this, options);
  }

  /** As the type the endpoint takes. */
  get core(): Core {
    return this as unknown as Core;
  }
}

interface Sending {
  data: number[];
  sent: number;
  limit: number;
  fin: boolean;
  finSent: boolean;
  finished: boolean;
  reset: boolean;
  unacked: number;
  blocked: boolean;
}

interface Receiving {
  chunks: Map<number, Uint8Array>;
  read: number;
  end: number;
  reset: boolean;
}

type Sent = { frames: Frame[]; at: number };

export class FakeConnection {
  eventStream = 0;
  eventValue = 0;
  readonly #core: FakeCore;
  readonly #options: CoreConnectionOptions;
  readonly #keys: { send: Uint8Array; receive: Uint8Array };
  readonly #events: [number, number, number][] = [];
  readonly #queue: Frame[] = [];
  readonly #inFlight = new Map<number, Sent>();
  readonly #received = new Set<number>();
  readonly #sending = new Map<number, Sending>();
  readonly #receiving = new Map<number, Receiving>();
  readonly #messages = new Map<number, { data: Uint8Array; have: Set<number>; done: boolean }>();
  readonly #datagrams: Uint8Array[] = [];
  readonly #opened = [0, 0];
  #next = 0;
  #ackDue = false;
  #completeAt = Number.POSITIVE_INFINITY;
  #closing: { code: number; reason: string; until: number; announced: boolean } | null = null;
  #closeSend = false;
  #reason = new Uint8Array(0);
  #lastHeard: number;
  #lastAcked: number;
  #pings = 0;
  #pingAt: number;
  #keepAlive: CoreConnectionOptions['keepAlive'];
  #route: Uint8Array | null = null;
  #ended = false;

  constructor(core: FakeCore, options: CoreConnectionOptions) {
    this.#core = core;
    this.#options = options;
    this.#keys = { send: options.sendKey.slice(), receive: options.receiveKey.slice() };
    this.#lastHeard = options.now;
    this.#lastAcked = options.now;
    this.#keepAlive = options.keepAlive;
    this.#pingAt = options.now + (options.keepAlive?.interval ?? Number.POSITIVE_INFINITY);
    if (options.initiator) {
      this.#next = 1;
      this.#completeAt = options.now;
    }
  }

  setRoute(route: Uint8Array | null): void {
    this.#route = route;
  }

  setKeepAlive(keepAlive: CoreConnectionOptions['keepAlive'] | null, now: number): void {
    this.#keepAlive = keepAlive ?? undefined;
    this.#pingAt = now + (keepAlive?.interval ?? Number.POSITIVE_INFINITY);
  }

  completeReceived(now: number): void {
    this.#core.check();
    this.#received.add(0);
    this.#ackDue = true;
    this.#lastHeard = now;
  }

  receive(datagram: Uint8Array, start: number, now: number): boolean {
    this.#core.check();
    if (this.#ended) return false;
    const header = datagram.subarray(start, start + HEADER);
    const number = new DataView(header.buffer, header.byteOffset).getUint32(9);
    if (this.#received.has(number)) return false;
    const frames = nobleAead.open(this.#keys.receive, number, header, datagram.subarray(start + HEADER));
    if (frames === null) return false;
    this.#received.add(number);
    this.#lastHeard = now;
    for (const frame of JSON.parse(new TextDecoder().decode(frames)) as Frame[]) this.#frame(frame, now);
    return true;
  }

  transmit(now: number, max = 32): number {
    this.#core.check();
    let count = 0;
    if (this.#completeAt <= now && count < max) {
      if (this.#packet(count, this.#options.complete!)) count++;
      this.#completeAt = now + RTO;
    }
    if (this.#closing !== null) {
      const { code, reason } = this.#closing;
      if (this.#closeSend && this.#data(count, [{ t: 'close', code, reason }])) count++;
      this.#closeSend = false;
      return count;
    }
    this.#fillStreams();
    while (count < max && (this.#queue.length > 0 || this.#ackDue)) {
      const frames: Frame[] = this.#ackDue ? [{ t: 'ack', pns: [...this.#received].slice(-32) }] : [];
      const body: Frame[] = [];
      let size = 0;
      while (this.#queue.length > 0 && size < 1) {
        const frame = this.#queue.shift()!;
        size += 'data' in frame ? 1 : 0.1;
        body.push(frame);
      }
      if (!this.#data(count, [...frames, ...body])) {
        this.#queue.unshift(...body);
        return count;
      }
      this.#ackDue = false;
      if (body.length > 0) this.#inFlight.set(this.#next - 1, { frames: body, at: now });
      count++;
    }
    return count;
  }

  nextTimeout(): number {
    this.#core.check();
    if (this.#ended) return Number.POSITIVE_INFINITY;
    if (this.#closing !== null) return this.#closing.until;
    const first = this.#inFlight.values().next().value;
    const idle = this.#options.local.idleTimeout;
    return Math.min(
      first === undefined ? Number.POSITIVE_INFINITY : first.at + RTO,
      this.#completeAt,
      this.#pingAt,
      idle === 0 ? Number.POSITIVE_INFINITY : this.#lastHeard + idle,
    );
  }

  handleTimeout(now: number): void {
    this.#core.check();
    if (this.#closing !== null) {
      if (now < this.#closing.until) return;
      if (!this.#closing.announced) this.#event(EventKind.CLOSED, 0, this.#closing.code);
      this.#end();
      return;
    }
    for (const [number, sent] of [...this.#inFlight]) {
      if (sent.at + RTO > now) continue;
      this.#inFlight.delete(number);
      this.#queue.unshift(...sent.frames);
    }
    if (this.#pingAt <= now && this.#keepAlive !== undefined) {
      if (this.#pings++ > this.#keepAlive.maxRetries) return this.#timeOut();
      this.#queue.push({ t: 'ping' });
      this.#pingAt = now + this.#keepAlive.retryInterval;
    }
    const idle = this.#options.local.idleTimeout;
    if (idle > 0 && this.#lastHeard + idle <= now) this.#timeOut();
  }

  nextEvent(): number {
    this.#core.check();
    const event = this.#events.shift();
    if (event === undefined) return EventKind.NONE;
    [, this.eventStream, this.eventValue] = event;
    return event[0];
  }

  openStream(): number {
    if (this.#opened[0]! >= this.#options.remote.maxStreams) return -1;
    const id = this.#opened[0]!++ * 4 + (this.#options.initiator ? 0 : 1);
    this.#streams(id);
    return id;
  }

  writeStream(id: number, data: Uint8Array, start = 0, end = data.length): number {
    this.#core.check();
    const sending = this.#streams(id).sending;
    const taken = Math.min(end - start, sending.limit - sending.data.length);
    for (let i = 0; i < taken; i++) sending.data.push(data[start + i]!);
    sending.blocked = taken < end - start;
    return taken;
  }

  finishStream(id: number): void {
    this.#streams(id).sending.fin = true;
  }

  resetStream(id: number, code: number): void {
    const { sending } = this.#streams(id);
    if (sending.reset || sending.finished) return;
    sending.reset = true;
    this.#queue.push({ t: 'reset', id, code });
  }

  stopSending(id: number, code: number): void {
    this.#queue.push({ t: 'stop', id, code });
  }

  readStream(id: number, target: Uint8Array): number {
    this.#core.check();
    const { receiving } = this.#streams(id);
    let count = 0;
    for (const [at, chunk] of [...receiving.chunks].sort(([a], [b]) => a - b)) {
      if (at + chunk.length <= receiving.read) receiving.chunks.delete(at);
      if (at > receiving.read || at + chunk.length <= receiving.read) continue;
      const part = chunk.subarray(receiving.read - at).subarray(0, target.length - count);
      target.set(part, count);
      count += part.length;
      receiving.read += part.length;
    }
    return count === 0 && receiving.read === receiving.end ? -1 : count;
  }

  raiseStreamWindow(id: number, bytes: number): void {
    this.#queue.push({ t: 'max', id, value: bytes });
  }

  sendMessage(data: Uint8Array): number {
    this.#core.check();
    if (data.length > R) throw new LocalError('INVALID_ARGUMENT', 'message too long');
    const id = this.#opened[1]!++ * 4 + 2 + (this.#options.initiator ? 0 : 1);
    for (let at = 0; at === 0 || at < data.length; at += CHUNK)
      this.#queue.push({ t: 'message', id, at, length: data.length, data: text(data.subarray(at, at + CHUNK)) });
    return id;
  }

  readMessage(id: number): Uint8Array {
    return this.#messages.get(id)!.data;
  }

  sendDatagram(data: Uint8Array): boolean {
    if (data.length > this.#options.remote.maxDatagram) return false;
    this.#queue.push({ t: 'datagram', data: text(data) });
    return true;
  }

  readDatagram(): Uint8Array {
    return this.#datagrams.shift()!;
  }

  close(code: number, reason: Uint8Array, now: number): void {
    this.#core.check();
    if (this.#closing !== null || this.#ended) return;
    this.#closing = { code, reason: new TextDecoder().decode(reason), until: now + 3 * RTO, announced: false };
    this.#closeSend = true;
  }

  closeReason(): Uint8Array {
    return this.#reason;
  }

  stats(): never {
    return {} as never;
  }

  free(): void {
    this.#core.check();
    this.#core.opened--;
    this.#ended = true;
  }

  get asCore(): CoreConnection {
    return this as unknown as CoreConnection;
  }

  #frame(frame: Frame, now: number): void {
    if (frame.t !== 'ack') this.#ackDue = true;
    if (this.#closing !== null) {
      this.#closeSend = true;
      return;
    }
    switch (frame.t) {
      case 'ack':
        for (const number of frame.pns) this.#acknowledged(number, now);
        return;
      case 'stream':
        return this.#streamFrame(frame);
      case 'message':
        return this.#messageFrame(frame);
      case 'reset': {
        const { receiving } = this.#streams(frame.id);
        if (!receiving.reset) this.#event(EventKind.STREAM_RESET, frame.id, frame.code);
        receiving.reset = true;
        return;
      }
      case 'stop': {
        const { sending } = this.#streams(frame.id);
        if (sending.reset || sending.finished) return;
        this.resetStream(frame.id, frame.code);
        this.#event(EventKind.STREAM_STOPPED, frame.id, frame.code);
        return;
      }
      case 'max': {
        const { sending } = this.#streams(frame.id);
        sending.limit = Math.max(sending.limit, frame.value);
        if (sending.blocked) this.#event(EventKind.STREAM_WRITABLE, frame.id, 0);
        sending.blocked = false;
        return;
      }
      case 'datagram':
        this.#datagrams.push(bytes(frame.data));
        return this.#event(EventKind.DATAGRAM, 0, frame.data.length);
      case 'close':
        this.#reason = new TextEncoder().encode(frame.reason);
        this.#closing = { code: frame.code, reason: frame.reason, until: now + 3 * RTO, announced: true };
        return this.#event(EventKind.CLOSED, 0, frame.code);
    }
  }

  #streamFrame(frame: Extract<Frame, { t: 'stream' }>): void {
    const { receiving } = this.#streams(frame.id);
    const data = bytes(frame.data);
    receiving.chunks.set(frame.at, data);
    if (frame.fin) receiving.end = frame.at + data.length;
    this.#event(EventKind.STREAM_READABLE, frame.id, 0);
  }

  #messageFrame(frame: Extract<Frame, { t: 'message' }>): void {
    let message = this.#messages.get(frame.id);
    if (message === undefined) {
      message = { data: new Uint8Array(frame.length), have: new Set(), done: false };
      this.#messages.set(frame.id, message);
    }
    message.data.set(bytes(frame.data), frame.at);
    message.have.add(frame.at);
    if (message.done || message.have.size < Math.max(1, Math.ceil(frame.length / CHUNK))) return;
    message.done = true;
    this.#event(EventKind.MESSAGE, frame.id, frame.length);
  }

  #acknowledged(number: number, now: number): void {
    if (number === 0 && this.#completeAt !== Number.POSITIVE_INFINITY) {
      this.#completeAt = Number.POSITIVE_INFINITY;
      this.#event(EventKind.COMPLETED, 0, 0);
    }
    const sent = this.#inFlight.get(number);
    if (sent === undefined) return;
    this.#inFlight.delete(number);
    this.#lastAcked = now;
    this.#pings = 0;
    this.#pingAt = this.#lastAcked + (this.#keepAlive?.interval ?? Number.POSITIVE_INFINITY);
    for (const frame of sent.frames) if (frame.t === 'stream') this.#streamAcknowledged(frame);
  }

  #streamAcknowledged(frame: Extract<Frame, { t: 'stream' }>): void {
    const { sending } = this.#streams(frame.id);
    sending.unacked--;
    if (!sending.finSent || sending.unacked > 0 || sending.finished) return;
    sending.finished = true;
    this.#event(EventKind.STREAM_FINISHED, frame.id, 0);
  }

  #fillStreams(): void {
    for (const [id, sending] of this.#sending) {
      if (sending.reset || sending.finSent) continue;
      while (sending.sent < sending.data.length || (sending.fin && !sending.finSent)) {
        const part = Uint8Array.from(sending.data.slice(sending.sent, sending.sent + CHUNK));
        const fin = sending.fin && sending.sent + part.length === sending.data.length;
        this.#queue.push({ t: 'stream', id, at: sending.sent, data: text(part), fin });
        sending.sent += part.length;
        sending.finSent = fin;
        sending.unacked++;
      }
    }
  }

  #streams(id: number): { sending: Sending; receiving: Receiving } {
    let sending = this.#sending.get(id);
    let receiving = this.#receiving.get(id);
    if (sending === undefined || receiving === undefined) {
      const limit = this.#options.remote.initialMaxStreamData;
      sending = { data: [], sent: 0, limit, fin: false, finSent: false, finished: false, reset: false, unacked: 0, blocked: false };
      receiving = { chunks: new Map(), read: 0, end: -1, reset: false };
      this.#sending.set(id, sending);
      this.#receiving.set(id, receiving);
      const theirs = (id & 1) === (this.#options.initiator ? 1 : 0);
      if (theirs) this.#event(EventKind.STREAM_OPENED, id, 0);
    }
    return { sending, receiving };
  }

  #data(index: number, frames: Frame[]): boolean {
    const packet = new Uint8Array(HEADER);
    packet[0] = 0xc0;
    packet.set(this.#options.remoteId, 1);
    new DataView(packet.buffer).setUint32(9, this.#next);
    const sealed = nobleAead.seal(this.#keys.send, this.#next, packet, new TextEncoder().encode(JSON.stringify(frames)));
    if (!this.#packet(index, Uint8Array.of(...packet, ...sealed))) return false;
    this.#next++;
    return true;
  }

  #packet(index: number, packet: Uint8Array): boolean {
    const slot = this.#core.free.shift();
    if (slot === undefined) return false;
    let at = slot + HEADROOM;
    this.#core.buffer.set(packet, at);
    if (this.#route !== null) {
      at -= 9;
      this.#core.buffer[at] = 0x88;
      this.#core.buffer.set(this.#route, at + 1);
    }
    this.#core.packetOffsets[index] = at;
    this.#core.packetLengths[index] = packet.length + (slot + HEADROOM - at);
    return true;
  }

  #timeOut(): void {
    this.#event(EventKind.TIMED_OUT, 0, 0);
    this.#end();
  }

  #end(): void {
    this.#ended = true;
    this.#event(EventKind.DRAINED, 0, 0);
  }

  #event(kind: number, stream: number, value: number): void {
    this.#events.push([kind, stream, value]);
  }
}

function text(data: Uint8Array): string {
  return Buffer.from(data).toString('base64');
}

function bytes(data: string): Uint8Array {
  return new Uint8Array(Buffer.from(data, 'base64'));
}
