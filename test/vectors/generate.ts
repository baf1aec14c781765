/**
 * The test vectors of `docs/vectors.json`, computed by this implementation from fixed inputs.
 *
 * 1. A handshake, message by message.  2. Packets under its keys.  3. Datagrams of a flow.  4. A password exchange on
 * its connection.
 *
 * Nothing here writes a file: `run.mjs` prints, and `test/policy/vectors.test.ts` compares.
 */
import { cpaceVectors } from './cpace.ts';
import { datagramVectors } from './datagrams.ts';
import { handshakeVectors } from './handshake.ts';
import { packetVectors } from './packets.ts';
import { write } from './values.ts';

/** The file. */
export async function vectors(): Promise<string> {
  const handshake = handshakeVectors();
  return write([...handshake.sections, ...packetVectors(handshake), datagramVectors(), await cpaceVectors(handshake.hash)]);
}
