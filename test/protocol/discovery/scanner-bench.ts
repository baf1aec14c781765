/** A scanner of one link in virtual time, and the records of a device that it hears. */
import { expect } from 'vitest';
import {
  type DnsMessage,
  type DnsRecord,
  dnsResponse,
  MAX_INSTANCES,
  type ScannedService,
  Scanner,
  SERVICE_TYPE,
  type ServiceEvent,
  serviceRecords,
} from '../../../protocol/discovery/index.ts';

export const PEER = { address: '192.0.2.1', port: 5353 };

type Sent = readonly [time: number, message: DnsMessage];

export interface Shape {
  name?: string;
  port?: number;
  text?: string;
  addresses?: readonly string[];
  subtypes?: readonly string[];
}

/** Records that a device announces, without NSEC. */
export function records({
  name = 'pr-1-de-1',
  port = 5592,
  text = 'a=1',
  addresses = ['192.0.2.1', 'fe80::1'],
  subtypes = ['tcptunnel'],
}: Shape = {}) {
  return serviceRecords({ name, port, subtypes, addresses, txt: [new TextEncoder().encode(text)] }).filter(({ type }) => type !== 'NSEC');
}

export const instance = (name = 'pr-1-de-1'): string => `${name}.${SERVICE_TYPE}`;
export const ofTypes = (list: readonly DnsRecord[], ...types: string[]): DnsRecord[] => list.filter(({ type }) => types.includes(type));
export const withTtl = (list: readonly DnsRecord[], ttl: number): DnsRecord[] => list.map((record) => ({ ...record, ttl }));

/** A scanner in virtual time, with what it sent and reported. */
export class Bench {
  readonly scanner: Scanner;
  readonly sent: Sent[] = [];
  readonly events: [time: number, event: ServiceEvent][] = [];
  now = 0;

  constructor(random: () => number = () => 0, limit = MAX_INSTANCES) {
    this.scanner = new Scanner(random, limit);
  }

  /** Makes a bench that browses the service type. */
  static browsing(random?: () => number, limit?: number): Bench {
    const bench = new Bench(random, limit);
    bench.scanner.browse(SERVICE_TYPE, 0);
    return bench;
  }

  hear(answers: readonly DnsRecord[], { additionals = [] as readonly DnsRecord[], from = PEER, own = false } = {}): void {
    this.receive(dnsResponse({ answers, additionals }), from, own);
  }

  receive(message: DnsMessage, from = PEER, own = false): void {
    this.scanner.receive(message, from, this.now, own);
    this.drain();
  }

  run(until: number): void {
    for (let next = this.scanner.nextTimeout(); next <= until; next = this.scanner.nextTimeout()) {
      this.now = Math.max(this.now, next);
      this.scanner.handleTimeout(this.now);
      this.drain();
      expect(this.scanner.nextTimeout()).toBeGreaterThan(this.now);
    }
    this.now = until;
  }

  drain(): void {
    for (let out = this.scanner.transmit(); out !== null; out = this.scanner.transmit()) {
      expect(out.to).toBeNull();
      this.sent.push([this.now, out.message]);
    }
    for (let event = this.scanner.nextEvent(); event !== null; event = this.scanner.nextEvent()) this.events.push([this.now, event]);
  }

  /** Returns what was sent since the last call: time and questions of each message. */
  questions(): [number, string[]][] {
    return this.sent.splice(0).map(([time, { questions }]) => [time, questions.map(({ type, name }) => `${type} ${name}`)]);
  }

  /** Returns the services that exist according to the events. */
  services(): Map<string, ScannedService> {
    const there = new Map<string, ScannedService>();
    for (const [, { name, service }] of this.events) {
      if (service === null) there.delete(name);
      else there.set(name, service);
    }
    return there;
  }
}

/** Returns port, addresses and TXT items as text. */
export function shown(service: ScannedService | null | undefined) {
  if (service === null || service === undefined) return null;
  const text = service.txt?.items.map((item) => new TextDecoder().decode(item)) ?? null;
  return [service.endpoints.map(({ address, port }) => `${address} ${port}`), text];
}

export const WHOLE = [['192.0.2.1 5592', 'fe80::1 5592'], ['a=1']];
