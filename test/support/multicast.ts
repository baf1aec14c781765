/**
 * Finds the interfaces on which this host receives its own multicast: tests of multicast DNS between its processes need
 * one.
 */
import { createSocket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import type { MdnsLink } from '../../platform/mdns.ts';

/** Name of the loopback interface. */
export const LOOPBACK = Object.entries(networkInterfaces()).find(([, list]) => list?.[0]?.internal === true)?.[0] ?? 'lo';

/** Unique to this run, so that other traffic is ignored. */
const TEXT = `svc multicast test ${process.pid}`;

/** Groups for documentation and experiments (RFC 6676 §2, RFC 4727 §2.5.2), so that nothing else is in them. */
const GROUPS = { 4: '233.252.0.1', 6: 'ff02::114' } as const;
const OWN = { 4: '127.0.0.1', 6: '::1' } as const;

/**
 * Unicast datagrams to ourselves after each multicast: when the last of them has arrived, so has the multicast, if the
 * kernel loops it back.
 */
const MARKERS = 20;

/**
 * The links on which this host receives its own multicast, found with a plain socket, so that a test does not skip a
 * link because of an error in the code under test.
 */
export async function linksWithMulticast(links: readonly MdnsLink[]): Promise<MdnsLink[]> {
  const heard = await Promise.all(links.map((link) => hears(link as MdnsLink & { family: 4 | 6; interface: string })));
  return links.filter((_, index) => heard[index]);
}

/** Each marker is sent when the previous one has arrived, so no time passes waiting: false after the last of them. */
async function hears({ family, interface: name, addresses }: MdnsLink & { family: 4 | 6; interface: string }): Promise<boolean> {
  const socket = createSocket({ type: `udp${family}`, ...(family === 6 && { ipv6Only: true }) });
  try {
    return await new Promise<boolean>((resolve, reject) => {
      let markers = 0;
      const sent = (error: Error | null): void => (error === null ? undefined : reject(error));
      const mark = (): void => socket.send(`marker ${++markers}`, socket.address().port, OWN[family], sent);
      socket.on('error', reject);
      socket.on('message', (message) => {
        if (String(message) === TEXT) resolve(true);
        else if (String(message) === `marker ${MARKERS}`) resolve(false);
        else if (String(message) === `marker ${markers}`) mark();
      });
      socket.bind(0, () => {
        const place = family === 4 ? addresses[0] : `::%${name}`;
        socket.addMembership(GROUPS[family], place);
        socket.setMulticastInterface(place as string);
        socket.send(TEXT, socket.address().port, GROUPS[family], (error) => (error === null ? mark() : reject(error)));
      });
    });
  } catch {
    return false;
  } finally {
    socket.close();
  }
}
