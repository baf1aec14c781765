/** Lab process: announces each second this number of services of our devices' type on the link. None of them exists. */
import { createSocket } from 'node:dgram';
import { encode } from 'dns-packet';
import { serve } from '../../../dist/bench/processes/child.js';
import { toPacket } from '../../../dist/platform/node/mdns-packets.js';
import { dnsResponse, MDNS_PORT, serviceRecords } from '../../../dist/protocol/discovery/index.js';

const GROUP = '224.0.0.251';
/** Services in a packet. */
const TOGETHER = 4;

serve({
  /** @param address of the interface */
  announce: ({ count, address }) =>
    new Promise((resolve) => {
      const socket = createSocket({ type: 'udp4', reuseAddr: true });
      socket.bind(MDNS_PORT, () => {
        socket.setMulticastInterface(address);
        const packets = packetsOf(count);
        const all = () => {
          for (const packet of packets) socket.send(packet, MDNS_PORT, GROUP);
        };
        all();
        setInterval(all, 1_000);
        resolve(packets.length);
      });
    }),
});

function packetsOf(count) {
  const packets = [];
  for (let first = 0; first < count; first += TOGETHER) {
    const answers = Array.from({ length: TOGETHER }, (_, index) => records(first + index)).flat();
    packets.push(encode(toPacket(dnsResponse({ answers }))));
  }
  return packets;
}

function records(number) {
  const name = `pr-crowd-de-${number}`;
  const txt = [`productid=pr-crowd`, `deviceid=de-${number}`].map((text) => new TextEncoder().encode(text));
  return serviceRecords({ name, port: 5592, subtypes: [], txt, addresses: [`192.168.1.${100 + (number % 100)}`] });
}
