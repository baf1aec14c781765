/** Runs a `Sampler` over the socket of a host and the further ones that it needs. */

import type { Cancel } from '../../platform/environment.ts';
import type { SocketAddress } from '../../protocol/control/index.ts';
import { MAIN_SOCKET, type Sampler } from '../../protocol/rendezvous/index.ts';
import { FurtherSockets } from './further-sockets.ts';
import type { RendezvousHost } from './rendezvous-host.ts';
import type { StunDispatcher } from './stun-dispatcher.ts';

/**
 * Runs one sampling; `ask` queries the station for this end's address.
 * @param onDone called once, unless the sampling was ended before
 * @returns a function that ends it
 */
export function runSampler(
  host: RendezvousHost,
  dispatcher: StunDispatcher,
  sampler: Sampler,
  { ask, onDone }: { ask(): Promise<SocketAddress | null>; onDone(): void },
): Cancel {
  const { clock } = host.environment;
  let cancelTimer: Cancel = () => {};
  let ended = false;
  const take = (datagram: Uint8Array, from: SocketAddress, socket: number): boolean => {
    const isOurs = sampler.receive(datagram, from, socket, clock.now());
    if (isOurs) clock.soon(serve);
    return isOurs;
  };
  const further = new FurtherSockets(host, (datagram, path, number) => void take(datagram, path, number));
  const stopWaiting = dispatcher.addWaiting((datagram, path) => take(datagram, path, MAIN_SOCKET));
  const end = (): void => {
    ended = true;
    cancelTimer();
    stopWaiting();
    further.close();
  };
  const serve = (): void => {
    if (ended) return;
    sampler.handleTimeout(clock.now());
    for (let event = sampler.nextEvent(); event !== null; event = sampler.nextEvent()) {
      if (event.kind === 'sockets') void further.open(event.count).then(opened);
      else if (event.kind === 'station') void ask().then(answered);
      else {
        end();
        onDone();
        return;
      }
    }
    for (let packet = sampler.transmit(clock.now()); packet !== null; packet = sampler.transmit(clock.now())) {
      const { socket, to, datagram } = packet;
      if (socket === MAIN_SOCKET) host.send(datagram, host.socket.path(to.address, to.port));
      else further.send(socket, datagram, to);
    }
    cancelTimer();
    cancelTimer = clock.schedule(Math.max(0, sampler.nextTimeout() - clock.now()), serve);
  };
  const answered = (mapped: SocketAddress | null): void => {
    sampler.stationAnswered(mapped, clock.now());
    serve();
  };
  const opened = (ports: readonly number[]): void => {
    sampler.socketsOpened(ports, clock.now());
    serve();
  };
  serve();
  return end;
}
