/**
 * The appendix of PROTOCOL.md with test vectors, computed by this implementation from fixed inputs.
 *
 * 1. A handshake, message by message.  2. Packets under its keys.  3. Datagrams of a flow.  4. A password exchange on
 * its connection.
 *
 * Nothing here writes a file: `run.mjs` prints, and `test/policy/vectors.test.ts` compares.
 */
import { render } from './appendix.ts';
import { cpaceVectors } from './cpace.ts';
import { datagramVectors } from './datagrams.ts';
import { handshakeVectors } from './handshake.ts';
import { packetVectors } from './packets.ts';

const INTRODUCTION = [
  'The values below let an implementation check itself step by step. They belong together: one handshake of a client with a device, packets of its connection, and a password exchange over it. Bytes are in hexadecimal, 32 to a line. Keys that are fixed here serve no other purpose.',
];

/** The appendix as Markdown. */
export async function appendix(): Promise<string> {
  const handshake = handshakeVectors();
  const sections = [...handshake.sections, ...packetVectors(handshake), datagramVectors(), await cpaceVectors(handshake.hash)];
  return render(INTRODUCTION, sections);
}
