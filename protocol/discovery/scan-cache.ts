/**
 * The instances of the service that a scanner knows on one link, and the hosts that their SRV records name.
 *
 * Any host on the link can fill it. It holds a limited number of instances. One more replaces the instance that has
 * been incomplete longest or, when all are complete, the one heard longest ago. So a new device always gets a slot, and
 * forged instances are the first to go unless they are complete. An instance that was asked for by name has an
 * additional slot and is not replaced. An instance is forgotten when no PTR record lists it any longer, a host when no
 * instance names it.
 */
import { hostOf } from './names.ts';
import { RecordSet } from './record-set.ts';
import type { DnsRecord } from './records.ts';

/** Most instances of one link, besides those asked for by name. */
export const MAX_INSTANCES = 1024;
/** Two, as two devices may have the same name (PROTOCOL.md §11). */
export const MAX_SRV = 2;
export const MAX_TXT = 2;
/** Most addresses of one family of a host. */
export const MAX_ADDRESSES = 8;

const SECOND = 1000;
/** The longest pause between two questions (RFC 6762 §5.2). */
const HOUR = 3_600_000;

/** The schedule of a question: first now or later, then after 1 s, then after twice the last pause (RFC 6762 §5.2). */
export class Schedule {
  next: number;
  #pause = SECOND;
  #left: number;

  /** @param times number of questions, after which it ends */
  constructor(first: number, times = Number.POSITIVE_INFINITY) {
    this.next = first;
    this.#left = times;
  }

  /** Call when it was asked, or counts as asked. */
  asked(now: number): void {
    this.#left--;
    this.next = this.#left > 0 ? now + this.#pause : Number.POSITIVE_INFINITY;
    this.#pause = Math.min(2 * this.#pause, HOUR);
  }
}

/** One instance of the service. */
export interface Instance {
  /** The spelling in which it was first heard, or asked for. */
  readonly name: string;
  readonly key: string;
  /** By key of the browsed name. */
  readonly listed: Map<string, RecordSet>;
  readonly srv: RecordSet;
  readonly txt: RecordSet;
  readonly hosts: Set<Host>;
  /** Questions for missing records. */
  missing: Schedule;
  /** Questions by name; null when no caller asked for it. */
  wanted: Schedule | null;
  askedAt: number;
  /** Signature of the service as reported; null while none is reported. */
  reported: string | null;
}

/** A host that instances name. */
export interface Host {
  readonly name: string;
  readonly a: RecordSet;
  readonly aaaa: RecordSet;
  readonly instances: Set<Instance>;
  missing: Schedule;
  askedAt: number;
}

export class ScanCache {
  readonly hosts = new Map<string, Host>();
  /** In the order in which they were last heard. */
  readonly #instances = new Map<string, Instance>();
  /** The incomplete ones that were not asked for by name, in order of arrival. */
  readonly #incomplete = new Set<Instance>();
  readonly #wanted = new Set<Instance>();
  readonly #limit: number;
  readonly #onForgotten: (instance: Instance) => void;
  readonly #questionAt: (now: number) => Schedule;

  /**
   * @param limit most instances besides those asked for by name
   * @param questionAt when to ask for the missing records of a new name
   */
  constructor(limit: number, onForgotten: (instance: Instance) => void, questionAt: (now: number) => Schedule) {
    this.#limit = limit;
    this.#onForgotten = onForgotten;
    this.#questionAt = questionAt;
  }

  get instances(): Iterable<Instance> {
    return this.#instances.values();
  }

  get wanted(): Iterable<Instance> {
    return this.#wanted;
  }

  get(name: string): Instance | undefined {
    return this.#instances.get(name.toLowerCase());
  }

  /** Returns the known answers to a question for the PTR records of a browsed name. */
  knownAnswers(key: string, now: number): DnsRecord[] {
    return [...this.#instances.values()].flatMap(({ listed }) => listed.get(key)?.knownAnswers(now) ?? []);
  }

  /** Returns the instance of that name, which was heard now. */
  hear(name: string, now: number): Instance {
    const key = name.toLowerCase();
    const known = this.#instances.get(key);
    if (known === undefined) return this.#add(name, key, now);
    this.#instances.delete(key);
    this.#instances.set(key, known);
    return known;
  }

  /** Asks for the instance by name from now on. */
  want(name: string, schedule: Schedule, now: number): Instance {
    const instance = this.get(name) ?? this.#create(name, name.toLowerCase(), now);
    instance.wanted = schedule;
    this.#wanted.add(instance);
    this.#incomplete.delete(instance);
    this.link(instance, now);
    return instance;
  }

  unwant(instance: Instance, now: number): void {
    instance.wanted = null;
    this.#wanted.delete(instance);
    this.link(instance, now);
    // It uses an ordinary slot, if one is free.
    if (this.#instances.size - this.#wanted.size > this.#limit) this.#forget(instance);
    else this.forgetUnlisted(instance);
  }

  /** Records whether it is complete, which decides what is dropped first. */
  setComplete(instance: Instance, complete: boolean): void {
    if (complete) this.#incomplete.delete(instance);
    else if (instance.wanted === null) this.#incomplete.add(instance);
  }

  /** Links it to the hosts that its SRV records name now. */
  link(instance: Instance, now: number): void {
    const targets = instance.srv.records().flatMap((record) => (record.type === 'SRV' ? [record.data.target] : []));
    const names = [...targets, ...(instance.wanted === null ? [] : [hostOf(instance.name)])];
    const hosts = new Set(names.map((name) => this.#host(name, now)));
    for (const host of instance.hosts) if (!hosts.has(host)) this.#unlink(instance, host);
    for (const host of hosts) {
      host.instances.add(instance);
      instance.hosts.add(host);
    }
  }

  /** Forgets an instance that no name lists and no caller asked for. */
  forgetUnlisted(instance: Instance): void {
    if (instance.listed.size === 0 && instance.wanted === null) this.#forget(instance);
  }

  #add(name: string, key: string, now: number): Instance {
    if (this.#instances.size - this.#wanted.size >= this.#limit) this.#makeRoom();
    const instance = this.#create(name, key, now);
    this.#incomplete.add(instance);
    return instance;
  }

  #makeRoom(): void {
    const candidates = this.#incomplete.size > 0 ? this.#incomplete : this.#instances.values();
    for (const instance of candidates) {
      if (instance.wanted !== null) continue;
      this.#forget(instance);
      return;
    }
  }

  #create(name: string, key: string, now: number): Instance {
    const instance: Instance = {
      name,
      key,
      listed: new Map(),
      // Answers to the question for the PTR record include them (RFC 6763 §12.1).
      srv: new RecordSet(MAX_SRV, 1),
      txt: new RecordSet(MAX_TXT, 1),
      hosts: new Set(),
      missing: this.#questionAt(now),
      wanted: null,
      askedAt: Number.NEGATIVE_INFINITY,
      reported: null,
    };
    this.#instances.set(key, instance);
    return instance;
  }

  #forget(instance: Instance): void {
    this.#instances.delete(instance.key);
    this.#incomplete.delete(instance);
    for (const host of instance.hosts) this.#unlink(instance, host);
    this.#onForgotten(instance);
  }

  #host(name: string, now: number): Host {
    const key = name.toLowerCase();
    const known = this.hosts.get(key);
    if (known !== undefined) return known;
    const host: Host = {
      name,
      a: new RecordSet(MAX_ADDRESSES, 1),
      aaaa: new RecordSet(MAX_ADDRESSES, 1),
      instances: new Set(),
      missing: this.#questionAt(now),
      askedAt: Number.NEGATIVE_INFINITY,
    };
    this.hosts.set(key, host);
    return host;
  }

  #unlink(instance: Instance, host: Host): void {
    instance.hosts.delete(host);
    host.instances.delete(instance);
    if (host.instances.size === 0) this.hosts.delete(host.name.toLowerCase());
  }
}
