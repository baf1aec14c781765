/**
 * Lab process on a host behind a box: determines the box's behaviour with plain sockets and the reflector. It does not
 * use our rendezvous.
 *
 * - mapping (RFC 4787 §4.1): how two ports of one address and a port of another see one socket;
 * - ports: how one place sees several sockets, opened one after the other;
 * - filter (RFC 4787 §5): from where an answer arrives when only one place was sent to;
 * - claims: whether a packet from outside to a port of the box changes the port that the host gets later towards its
 *   source;
 * - reaches: whether anything but the base station's addresses answers.
 */
import { createSocket } from 'node:dgram';
import { serve } from '../../../dist/bench/processes/child.js';

/** ms for an answer. */
const PATIENCE = 300;
const SOCKETS = 6;
const TRIES = 10;

const opened = [];

serve({
  /** @param a, b addresses of the reflector that are the base station's, c one that is not; p, q its ports */
  async probe({ a, b, c, p, q }) {
    // Until the routers have resolved each other's addresses.
    const first = await open(a);
    for (let tries = 0; tries < TRIES && (await first.ask([a, p])).length === 0; ) tries++;
    const main = await open(a);
    const seen = [];
    for (const to of [
      [a, p],
      [a, q],
      [b, p],
    ])
      seen.push((await main.ask(to))[0]?.seen.join(' ') ?? null);
    const others = [];
    for (let i = 0; i < SOCKETS; i++) {
      const socket = await open(a);
      others.push([socket.port, (await socket.ask([a, p]))[0]?.seen[1] ?? null]);
    }
    const filtered = await open(a);
    const answers = await filtered.ask(
      [a, p],
      {
        from: [
          [a, p],
          [a, q],
          [b, q],
        ],
      },
      3,
    );
    const claimed = await claims([a, p], [a, q]);
    const other = await main.ask([c, p]);
    for (const socket of opened.splice(0)) socket.close();
    return {
      outside: seen[0]?.split(' ')[0] ?? null,
      mapping: mappingOf(seen),
      ports: portsOf(others),
      filter: filterOf(
        answers.map(({ at }) => at.join(' ')),
        { a, b, p, q },
      ),
      claims: claimed,
      reaches: other.length > 0,
    };
  },
});

/** @returns whether the port towards `second` changes after an unsolicited packet from there */
async function claims(first, second) {
  const socket = await open(first[0]);
  const [before] = await socket.ask(first);
  if (before?.seen[1] !== socket.port) return false;
  await socket.ask(first, { from: [second] }, 1);
  const after = (await socket.ask(second)).find(({ at }) => at.join() === second.join());
  return after !== undefined && after.seen[1] !== before.seen[1];
}

function mappingOf([first, sameAddress, otherAddress]) {
  if (first === null) return 'silent';
  if (first === sameAddress && first === otherAddress) return 'independent';
  return first === sameAddress ? 'address' : 'address-port';
}

/** @param pairs of a local port and the one outside */
function portsOf(pairs) {
  if (pairs.some(([, outside]) => outside === null)) return 'silent';
  if (pairs.every(([local, outside]) => local === outside)) return 'kept';
  const steps = pairs.slice(1).map(([, outside], index) => outside - pairs[index][1]);
  return steps.every((step) => step === steps[0]) && steps[0] !== 0 ? `sequential ${steps[0]}` : 'random';
}

function filterOf(places, { a, b, p, q }) {
  if (!places.includes(`${a} ${p}`)) return 'silent';
  if (places.includes(`${b} ${q}`)) return 'none';
  return places.includes(`${a} ${q}`) ? 'address' : 'address-port';
}

let asked = 0;

/** A socket of the family of an address. */
function open(towards) {
  const socket = createSocket(towards.includes(':') ? 'udp6' : 'udp4');
  opened.push(socket);
  socket.on('error', () => {});
  const ask = ([address, port], more = {}, wanted = 1) =>
    new Promise((resolve) => {
      const id = ++asked;
      const answers = [];
      const done = () => {
        clearTimeout(timer);
        socket.off('message', receive);
        resolve(answers);
      };
      const receive = (message) => {
        const answer = JSON.parse(message);
        if (answer.id === id && answers.push(answer) === wanted) done();
      };
      const timer = setTimeout(done, PATIENCE);
      socket.on('message', receive);
      socket.send(JSON.stringify({ id, ...more }), port, address);
    });
  return new Promise((resolve) => socket.bind(0, () => resolve({ port: socket.address().port, ask })));
}
