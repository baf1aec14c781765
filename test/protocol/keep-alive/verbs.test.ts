/** The verbs of the learner, in the driver of test/protocol/verbs.test.ts. */
import { expect, test } from 'vitest';
import { Learner } from '../../../protocol/keep-alive/index.ts';
import { answerPort, encodeBindingAnswer } from '../../../protocol/stun/index.ts';
import { nativeHost } from '../../support/crypto.ts';
import { Log, VirtualDriver } from '../../support/verbs.ts';
import { SERVER } from './model.ts';

const LATENCY = 20;
const PORTS = [0, 40_001, 40_002];

test('the learner makes three exchanges, waits, and asks from another socket; a lost mapping is probed once more', () => {
  const driver = new VirtualDriver();
  const learner = new Learner(nativeHost(1));
  const [sent, events] = [new Log<string>(), new Log<string>()];
  driver.add(learner, {
    output: ({ socket, datagram }, now) => {
      const port = answerPort(datagram, PORTS[socket]!);
      sent.note(`${socket} ${port}`, now);
      const isElsewhere = port !== PORTS[socket];
      // The first mapping is gone.
      if (isElsewhere && sent.entries.length < 10) return;
      const answer = encodeBindingAnswer(datagram, { address: '203.0.113.7', port: PORTS[socket]! });
      driver.at(now + LATENCY, () => learner.receive(answer, SERVER, PORTS.indexOf(port), driver.now));
    },
    event: (event, now) => {
      events.note(event.kind, now);
      if (event.kind === 'open') driver.at(now + 1, () => learner.opened(event.socket, driver.now));
    },
  });
  learner.use(SERVER, 55_000, 0);
  driver.run(300_000);
  const begin = events.entries[0]![0];
  const probe = (from: number, asked: number): [number, string][] => {
    const last = from + 1 + 2 * (1_500 + LATENCY);
    const end = last + 58_684;
    const questions = [0, 500, 1_000].slice(0, asked).map((time): [number, string] => [end + time, '2 40001']);
    return [[from + 1, '1 40001'], [from + 1 + 1_500 + LATENCY, '1 40001'], [last, '1 40001'], [end - 4_000 + 1, '2 40002'], ...questions];
  };
  const first = probe(begin, 3);
  const again = first.at(-1)![0] + 1_500 + 1_000;
  expect(sent.entries).toEqual([...first, ...probe(again, 1)]);
  expect(events.entries.map(([, kind]) => kind)).toEqual(['open', 'open', 'close', 'open', 'open', 'close', 'changed']);
  expect([learner.interval, learner.nextTimeout()]).toEqual([55_163, Number.POSITIVE_INFINITY]);
});
