/** Hosts that send one byte and record arrivals, for the tests of NAT boxes. */
import type { PacketFate, SimulatedHost, Simulation } from '../../testing/index.ts';

/** A socket of a host, and its arrivals: `value from address:port`. */
export interface Party {
  readonly host: SimulatedHost;
  readonly port: number;
  readonly got: string[];
  /** Sends one byte, with its own hop limit if given. */
  send(value: number, address: string, port: number, hopLimit?: number): void;
  /** Source of the last datagram. */
  answer(value: number): void;
}

export function party(host: SimulatedHost, port: number): Party {
  const got: string[] = [];
  let last: { address: string; port: number } | undefined;
  const socket = host.bind({
    port,
    receive: (data, path) => {
      last = { address: path.address, port: path.port };
      got.push(`${data[0]} from ${path.address}:${path.port}`);
    },
  });
  const send: Party['send'] = (value, to, toPort, hopLimit) => {
    const path = socket.path(to, toPort);
    if (hopLimit === undefined) socket.send(Uint8Array.of(value), 0, 1, path, () => {});
    else socket.sendWithHopLimit(Uint8Array.of(value), path, hopLimit);
  };
  return { host, port, got, send, answer: (value) => send(value, last!.address, last!.port) };
}

/** The fate of each datagram from now on, without the verdict of the link. */
export function fates(simulation: Simulation): PacketFate[] {
  const seen: PacketFate[] = [];
  simulation.onTrace = (_, fate) => fate !== 'passed' && seen.push(fate);
  return seen;
}

/** The address and port in `value from address:port`. */
export function sourceOf(got: string | undefined): { address: string; port: number } {
  const [, address, port] = /from (.*):(\d+)$/.exec(got ?? '')!;
  return { address: address!, port: Number(port) };
}
