import { expect, test } from 'vitest';
import { ChannelPaths, type ChannelPathsEvent, type Over } from '../../../protocol/station-dial/index.ts';
import { VirtualDriver } from '../../support/verbs.ts';

/** A channel in a network that passes or blocks UDP. */
class Network {
  readonly driver = new VirtualDriver();
  readonly log: string[] = [];
  udp = true;
  webSockets = true;
  readonly paths: ChannelPaths;
  /** Time until an answer, and until silence is noticed, ms. */
  readonly latency = 50;
  silence = 500;

  constructor(over: Over) {
    this.paths = new ChannelPaths(over, 0);
    this.driver.add(this.paths, { event: (event) => this.#act(event) });
  }

  works(over: Over): boolean {
    return over === 'udp' ? this.udp : this.webSockets;
  }

  /** Returns the events since the last call. */
  run(until: number): string[] {
    this.driver.run(until);
    return this.log.splice(0);
  }

  at(time: number, run: () => void): void {
    this.driver.at(time, run);
  }

  #act(event: ChannelPathsEvent): void {
    const { paths, driver } = this;
    this.log.push(`${driver.now} ${event.kind}`);
    if (event.kind === 'ask-active')
      this.#later(
        this.works(paths.over),
        () => paths.activeAnswered(),
        () => paths.activeSilent(driver.now),
      );
    if (event.kind === 'ask-udp')
      this.#later(
        this.udp,
        () => paths.udpAnswered(),
        () => paths.udpSilent(),
      );
    if (event.kind === 'open-websocket')
      this.#later(
        this.webSockets,
        () => paths.webSocketAnswered(driver.now),
        () => paths.webSocketFailed(driver.now),
      );
    if (event.kind === 'migrate') this.at(driver.now, () => paths.migrated(event.to, driver.now));
  }

  #later(works: boolean, answered: () => void, silent: () => void): void {
    this.at(this.driver.now + (works ? this.latency : this.silence), works ? answered : silent);
  }
}

test('UDP stays the path while packets come back', () => {
  expect(new Network('udp').run(1_000_000)).toEqual([]);
});

test('a path that answers a challenge is kept', () => {
  const network = new Network('udp');
  for (const time of [100, 200, 5000]) network.at(time, () => network.paths.suspected(time));
  expect(network.run(1_000_000)).toEqual(['100 ask-active', '200 ask-active', '5000 ask-active']);
});

test('a channel on silent UDP migrates to a WebSocket, challenges UDP every minute, and migrates back when it answers', () => {
  const network = new Network('udp');
  network.udp = false;
  network.at(1000, () => network.paths.suspected(1000));
  network.at(100_000, () => {
    network.udp = true;
  });
  expect(network.run(300_000)).toEqual([
    '1000 ask-active',
    '1500 open-websocket',
    '1550 migrate',
    '61550 ask-udp',
    '121550 ask-udp',
    '121600 migrate',
    '131600 close-websocket',
  ]);
  expect(network.paths.over).toBe('udp');
});

test('a channel on a silent WebSocket migrates to another one, or to UDP if that answers first', () => {
  const network = new Network('websocket');
  network.udp = false;
  network.at(1000, () => {
    network.webSockets = false;
    network.paths.suspected(1000);
  });
  network.at(1200, () => {
    network.webSockets = true;
  });
  expect(network.run(50_000)).toEqual(['1000 ask-active', '1500 open-websocket', '1500 ask-udp', '1550 migrate']);
  network.at(51_000, () => {
    network.webSockets = false;
    network.udp = true;
    network.paths.suspected(51_000);
  });
  expect(network.run(200_000)).toEqual([
    '51000 ask-active',
    '51500 open-websocket',
    '51500 ask-udp',
    '51550 migrate',
    '52000 close-websocket',
  ]);
});

test('a change of network replaces a WebSocket at once, even a new one, but not UDP', () => {
  const network = new Network('websocket');
  network.udp = false;
  for (const time of [1000, 1100]) network.at(time, () => network.paths.networkChanged(time));
  expect(network.run(10_000)).toEqual([
    '1000 open-websocket',
    '1000 ask-udp',
    '1050 migrate',
    '1100 open-websocket',
    '1100 ask-udp',
    '1150 migrate',
  ]);
  const other = new Network('udp');
  other.at(1000, () => other.paths.networkChanged(1000));
  expect(other.run(10_000)).toEqual([]);
});

test('attempts of an earlier network are not waited for', () => {
  const network = new Network('websocket');
  network.udp = network.webSockets = false;
  network.silence = 10_000;
  network.at(1000, () => network.paths.networkChanged(1000));
  network.at(2000, () => {
    network.webSockets = true;
    network.paths.networkChanged(2000);
  });
  expect(network.run(9_000)).toEqual(['1000 open-websocket', '1000 ask-udp', '2000 open-websocket', '2000 ask-udp', '2050 migrate']);
});

test('a channel without ids for another path ends unless its path has answered again', () => {
  for (const hasAnswered of [false, true]) {
    const network = new Network('websocket');
    network.paths.networkChanged(0);
    if (hasAnswered) network.paths.activeAnswered();
    network.paths.withoutIds(3_000);
    const events = [];
    for (let event = network.paths.nextEvent(); event !== null; event = network.paths.nextEvent()) events.push(event.kind);
    expect(events).toEqual(['open-websocket', 'ask-udp', ...(hasAnswered ? [] : ['end']), 'close-websocket']);
  }
});

test('a WebSocket that does not open is retried after a pause while nothing comes back', () => {
  const network = new Network('udp');
  network.udp = network.webSockets = false;
  for (let time = 1000; time <= 20_000; time += 1000) network.at(time, () => network.paths.suspected(time));
  const opened = network.run(40_000).filter((line) => line.endsWith('open-websocket'));
  expect(opened).toEqual([
    '1500 open-websocket',
    '5000 open-websocket',
    '8500 open-websocket',
    '12000 open-websocket',
    '15500 open-websocket',
    '19000 open-websocket',
  ]);
});

test('a WebSocket that opens after the path has answered again is closed', () => {
  const network = new Network('udp');
  network.at(0, () => {
    network.udp = false;
    network.paths.suspected(0);
  });
  network.at(490, () => {
    network.udp = true;
  });
  network.at(501, () => network.paths.suspected(501));
  network.at(502, () => network.paths.activeAnswered());
  expect(network.run(100_000)).toEqual(['0 ask-active', '500 open-websocket', '501 ask-active', '550 close-websocket']);
});

test('a lingering WebSocket is not closed while another one is challenged', () => {
  const network = new Network('websocket');
  network.at(69_540, () => {
    network.udp = false;
    network.paths.suspected(69_540);
  });
  expect(network.run(100_000)).toEqual(['60000 ask-udp', '60050 migrate', '69540 ask-active', '70040 open-websocket', '70090 migrate']);
});

test('a WebSocket does not begin to linger while another one is challenged', () => {
  const network = new Network('websocket');
  network.webSockets = false;
  network.at(1000, () => network.paths.suspected(1000));
  network.at(1400, () => {
    network.silence = 15_000;
  });
  const closed = network.run(50_000).filter((line) => line.endsWith('close-websocket'));
  expect(closed).toEqual(['16500 close-websocket']);
});

test('a failed WebSocket is closed once', () => {
  const network = new Network('udp');
  network.udp = network.webSockets = false;
  network.at(0, () => network.paths.suspected(0));
  network.at(1100, () => network.paths.webSocketFailed(1100));
  expect(network.run(50_000)).toEqual(['0 ask-active', '500 open-websocket', '1000 close-websocket']);
});
