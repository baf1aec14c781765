/**
 * A gateway of the simulation that maps ports: a PCP and NAT-PMP server written from the RFCs, independent of the code
 * under test. It can lie.
 */
import type { Path } from '../../../protocol/path.ts';
import type { SimulatedHost } from '../../../testing/index.ts';
import type { SimulatedSocket } from '../../../testing/socket.ts';

export type Speaks = 'pcp' | 'nat-pmp' | 'nothing';

export class FakeGateway {
  speaks: Speaks = 'pcp';
  external = [11, 22, 33, 44];
  externalPort = 40_000;
  /** Longest lifetime granted, s. */
  lifetime = 86_400;
  /** Result of each mapping. */
  result = 0;
  /** Virtual ms at which its mapping table began. */
  startedAt = 0;
  /** External ports by internal ones. */
  readonly mapped = new Map<number, number>();
  /** Requests received: `pcp 5000 3600`, `pmp address`. */
  readonly requests: string[] = [];
  /** Changes each answer before it leaves; null: no answer. */
  lie: (answer: Uint8Array) => Uint8Array | null = (answer) => answer;
  readonly socket: SimulatedSocket;
  readonly #host: SimulatedHost;

  constructor(host: SimulatedHost) {
    this.#host = host;
    this.socket = host.bind({ port: 5351, receive: (datagram, path) => this.#receive(datagram, path) });
  }

  restart(): void {
    this.mapped.clear();
    this.startedAt = this.#host.clock.now();
  }

  get #epoch(): number {
    return Math.floor((this.#host.clock.now() - this.startedAt) / 1000);
  }

  #receive(datagram: Uint8Array, path: Path): void {
    if (this.speaks === 'nothing') {
      this.requests.push(datagram[0] === 2 ? 'pcp' : 'pmp');
      return;
    }
    const answer = datagram[0] === 2 ? this.#pcp(datagram, path) : this.#pmp(datagram);
    const sent = this.lie(answer);
    if (sent !== null) this.socket.send(sent, 0, sent.length, path, () => {});
  }

  #pcp(request: Uint8Array, path: Path): Uint8Array {
    if (this.speaks === 'nat-pmp') {
      this.requests.push('pcp');
      return this.#pmpHeader(8, 128, 1);
    }
    const answer = request.slice();
    const view = new DataView(answer.buffer);
    const [lifetime, internal] = [view.getUint32(4), view.getUint16(40)];
    this.requests.push(`pcp ${internal} ${lifetime}`);
    const client = path.address.includes(':') ? null : path.address.split('.').map(Number);
    const isOwn = client === null || [...request.subarray(20, 24)].join() === client.join();
    answer[1] = 0x81;
    answer[3] = isOwn ? this.result : 12;
    if (answer[3] === 0) this.#map(internal, lifetime);
    view.setUint32(4, answer[3] === 0 ? Math.min(lifetime, this.lifetime) : 300);
    view.setUint32(8, this.#epoch);
    answer.fill(0, 12, 24);
    view.setUint16(42, this.mapped.get(internal) ?? 0);
    answer.set([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, ...this.external], 44);
    return answer;
  }

  #pmp(request: Uint8Array): Uint8Array {
    if (request[1] === 0) {
      this.requests.push('pmp address');
      const answer = this.#pmpHeader(12, 128, this.result);
      answer.set(this.external, 8);
      return answer;
    }
    const asked = new DataView(request.buffer, request.byteOffset);
    const [internal, lifetime] = [asked.getUint16(4), asked.getUint32(8)];
    this.requests.push(`pmp ${internal} ${lifetime}`);
    if (this.result === 0) this.#map(internal, lifetime);
    const answer = this.#pmpHeader(16, 129, this.result);
    const view = new DataView(answer.buffer);
    view.setUint16(8, internal);
    view.setUint16(10, this.mapped.get(internal) ?? 0);
    view.setUint32(12, Math.min(lifetime, this.lifetime));
    return answer;
  }

  #pmpHeader(length: number, opcode: number, result: number): Uint8Array {
    const answer = new Uint8Array(length);
    answer[1] = opcode;
    answer[3] = result;
    new DataView(answer.buffer).setUint32(4, this.#epoch);
    return answer;
  }

  #map(internal: number, lifetime: number): void {
    if (lifetime === 0) this.mapped.delete(internal);
    else if (!this.mapped.has(internal)) this.mapped.set(internal, this.externalPort++);
  }
}
