/**
 * What a link of the lab is: IP with the faults of a real line between two new network namespaces, `near` (10.77.0.1) and `far` (10.77.0.2). Two make
 * one: `emulator.ts` and `netem.ts`.
 */
import { readFileSync } from 'node:fs';
import type { Namespace } from './namespaces.ts';

/** Name of the device at both ends. */
export const DEVICE = 'lab';
export const NEAR_ADDRESS = '10.77.0.1';
export const FAR_ADDRESS = '10.77.0.2';
/** The far end once more: TCP to this address runs with BBR, where the kernel has it. */
export const FAR_BBR_ADDRESS = '10.77.0.3';
export const PREFIX_LENGTH = 24;

/** A value for both directions, or for near → far and far → near. */
export type Both = number | readonly [number, number];

export interface LinkOptions {
  /** Mbit/s; default no limit. */
  readonly rate?: Both;
  /** Bytes that may wait for the line; default many. */
  readonly queue?: Both;
  /** ms one way. */
  readonly delay?: Both;
  /** ms that come on top, evenly distributed from 0. */
  readonly jitter?: Both;
  /** Percent. */
  readonly loss?: Both;
  /** Packets that are lost in a row, 1 to 1,000; `loss` stays the share of all. Netem's bursts are that long on average. Default 1. */
  readonly burst?: Both;
  /** Bytes of an IP packet, default 1,500. */
  readonly mtu?: number;
  /** Of the emulator's random numbers; netem's are its own. */
  readonly seed?: number;
}

/** Of one direction. */
export interface Counters {
  /** Carried to the other end. */
  readonly packets: number;
  readonly bytes: number;
  /** Not carried: at random; with netem for want of room in the queue too. */
  readonly lost: number;
  /** Not carried for want of room in the queue, where that is counted on its own. */
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
  /** Takes the link down, and the namespaces with what still runs in them. */
  close(): Promise<LinkCounters>;
}

/** Runs `work` over a link, which is taken down whatever happens. @returns what the link counted */
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

/** TCP of this kernel can run with it. */
export function hasCongestionControl(name: 'cubic' | 'bbr'): boolean {
  return readFileSync('/proc/sys/net/ipv4/tcp_available_congestion_control', 'utf8').split(/\s+/).includes(name);
}

/** TCP there runs with this congestion control, whatever the machine's default is. CUBIC (RFC 9438) is what others meet in the field. */
function route(from: Namespace, to: string, congestion: 'cubic' | 'bbr'): void {
  from.run('ip', 'route', 'replace', `${to}/32`, 'dev', DEVICE, 'congctl', congestion);
}
