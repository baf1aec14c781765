/**
 * Reports once a minute how many datagrams of UDP tunnels were lost. A program only sees that answers are missing, so
 * the end that knows says it.
 */
import type { Cancel, Clock } from '../../platform/environment.ts';
import type { DatagramCounts } from './datagrams.ts';

/** Our constant, ms. */
const MINUTE = 60_000;

/** Datagrams that were lost, by reason. */
export interface DatagramLoss extends Pick<DatagramCounts, 'tooLong' | 'dropped' | 'incomplete'> {
  /** On the way to the peer; each part of a datagram counts. */
  readonly lost: number;
}

export class DatagramLossReport {
  readonly #clock: Pick<Clock, 'schedule'>;
  readonly #total: () => DatagramLoss;
  readonly #report: (loss: DatagramLoss) => void;
  #reported: DatagramLoss = { tooLong: 0, dropped: 0, incomplete: 0, lost: 0 };
  #cancel: Cancel | null = null;

  /** @param total since the beginning @param report called with what was lost since the last call, if anything was */
  constructor(clock: Pick<Clock, 'schedule'>, total: () => DatagramLoss, report: (loss: DatagramLoss) => void) {
    this.#clock = clock;
    this.#total = total;
    this.#report = report;
  }

  /** Looks once a minute from now on, until `stop`. Harmless when it does already. */
  start(): void {
    this.#cancel ??= this.#clock.schedule(MINUTE, () => {
      this.#cancel = null;
      this.#look();
      this.start();
    });
  }

  /** Reports what is left, and looks no further. */
  stop(): void {
    if (this.#cancel === null) return;
    this.#cancel();
    this.#cancel = null;
    this.#look();
  }

  #look(): void {
    const total = this.#total();
    const loss = {
      tooLong: total.tooLong - this.#reported.tooLong,
      dropped: total.dropped - this.#reported.dropped,
      incomplete: total.incomplete - this.#reported.incomplete,
      lost: total.lost - this.#reported.lost,
    };
    this.#reported = total;
    if (Object.values(loss).some((count) => count > 0)) this.#report(loss);
  }
}

/** A loss in words, for people. @param peer `the device`, `clients` */
export function lossText({ tooLong, dropped, incomplete, lost }: DatagramLoss, peer: string): string {
  const reasons = [
    lost > 0 && `${lost} on the way to ${peer}`,
    incomplete > 0 && `${incomplete} from ${peer} arrived only in part`,
    dropped > 0 && `${dropped} here, for lack of room or of a connection`,
    tooLong > 0 && `${tooLong} too long: the other end needs an update`,
  ];
  return `datagrams of UDP services were lost: ${reasons.filter((reason) => reason !== false).join('; ')}`;
}
