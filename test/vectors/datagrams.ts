/** Test vectors of datagrams of a flow (PROTOCOL.md §12), whole and in parts. */
import { cutFlowDatagram, encodeFlowDatagram, encodeFlowPart } from '../../protocol/datagrams/index.ts';
import { counting } from './inputs.ts';
import type { Section } from './values.ts';

const FLOW = 100;
const NUMBER = 70;
/** Small, so that two parts are short vectors. */
const SIZE = 32;

/** The section. */
export function datagramVectors(): Section {
  const payload = counting(0x30, 48);
  const [first, second] = cutFlowDatagram({ flow: FLOW, payload }, { number: NUMBER, size: SIZE, most: 2 })!;
  return {
    title: 'Datagrams of a flow',
    values: {
      'flow number': FLOW,
      'UDP payload': payload,
      'content without FlowParts': encodeFlowDatagram(FLOW, payload),
      'whole content': encodeFlowPart({ flow: FLOW, number: 0, index: 0, count: 1, payload }),
      'datagram number': NUMBER,
      'content of part 0 of 2': first!,
      'content of part 1 of 2': second!,
    },
  };
}
