/**
 * A link of the lab: IP with the faults of a real line between two new network namespaces, `near` (10.77.0.1) and `far`
 * (10.77.0.2). Two modules create links: `emulator.ts` and `netem.ts`.
 */
import { readFileSync } from 'node:fs';
import type { Namespace } from './namespaces.ts';

/** Name of the device at both ends. */
export const DEVICE = 'lab';
export const NEAR_ADDRESS = '10.77.0.1';
export const FAR_ADDRESS = '10.77.0.2';
/** A second address of the far end: TCP to it runs with BBR, where the kernel has it. */
export const FAR_BBR_ADDRESS = '10.77.0.3';
export const PREFIX_LENGTH = 24;

/** A value for both directions, or for near → far and far → near. */
export type Both = number | readonly [number, number];

export interface LinkOptions {
  /** Mbit/s; default no limit. */
  readonly rate?: Both;
  /** Capacity of the line's queue in bytes; default large. */
  readonly queue?: Both;
  /** ms one way. */
  readonly delay?: Both;
  /** Additional ms, evenly distributed from 0. */
  readonly jitter?: Both;
  /** Percent. */
  readonly loss?: Both;
  /**
   * Packets that are lost in a row, 1 to 1,000; `loss` stays the share of all. Netem's bursts have this length on
   * average. Default 1.
   */
  readonly burst?: Both;
  /** Bytes of an IP packet, default 1,500. */
  readonly mtu?: number;
  /** Seed of the emulator's random numbers; netem has no seed. */
  readonly seed?: number;
}

/** Counters of one direction. */
export interface Counters {
  /** Carried to the other end. */
  readonly packets: number;
  readonly bytes: number;
  /** Not carried: at random; with netem also because the queue was full. */
  readonly lost: number;
  /** Not carried because the queue was full, where that is counted separately. */
  readonly dropped?: number;
}

export interface LinkCounters {
  /** Near → far. */
  readonly ab: Counters;
  readonly ba: Counters;
}

export interface Link {
  readonly near: Namespace;
  readonly far: Namespace;
  /** Removes the link, and the namespaces with their remaining processes. */
  close(): Promise<LinkCounters>;
}

/** Runs `work` over a link, which is removed in any case. @returns the counters of the link */
export async function over<Counted>(link: { close(): Promise<Counted> } & Link, work: (link: Link) => Promise<void>): Promise<Counted> {
  try {
    route(link.near, FAR_ADDRESS, 'cubic');
    route(link.far, NEAR_ADDRESS, 'cubic');
    link.far.run('ip', 'address', 'add', `${FAR_BBR_ADDRESS}/32`, 'dev', DEVICE);
    if (hasCongestionControl('bbr')) route(link.near, FAR_BBR_ADDRESS, 'bbr');
    await work(link);
  } catch (error) {
    await link.close();
    throw error;
  }
  return link.close();
}

/** Whether TCP of this kernel can run with it. */
export function hasCongestionControl(name: 'cubic' | 'bbr'): boolean {
  return readFileSync('/proc/sys/net/ipv4/tcp_available_congestion_control', 'utf8').split(/\s+/).includes(name);
}

/**
 * Sets TCP's congestion control there, whatever the machine's default is. CUBIC (RFC 9438) is the usual competitor in
 * the field.
 */
function route(from: Namespace, to: string, congestion: 'cubic' | 'bbr'): void {
  from.run('ip', 'route', 'replace', `${to}/32`, 'dev', DEVICE, 'congctl', congestion);
}
