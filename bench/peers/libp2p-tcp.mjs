/** Peer: libp2p over TCP with Noise and yamux. */
import { noise } from '@libp2p/noise';
import { tcp } from '@libp2p/tcp';
import { yamux } from '@libp2p/yamux';
import { libp2pSubject } from './libp2p.mjs';

libp2pSubject((host) => `/ip4/${host}/tcp/0`, {
  transports: [tcp({ dialOpts: { noDelay: true } })],
  connectionEncrypters: [noise()],
  streamMuxers: [yamux()],
});
