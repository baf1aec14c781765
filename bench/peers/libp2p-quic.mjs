/** Peer: libp2p over QUIC. */
import { quic } from '@chainsafe/libp2p-quic';
import { libp2pSubject } from './libp2p.mjs';

libp2pSubject((host) => `/ip4/${host}/udp/0/quic-v1`, { transports: [quic()] });
