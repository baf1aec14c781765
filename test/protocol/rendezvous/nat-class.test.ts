/** Classes of NATs from samples, against a simple model of each class. */
import { describe, expect, test } from 'vitest';
import type { NatReport } from '../../../protocol/control/index.ts';
import { classifyNat, type NatSample } from '../../../protocol/rendezvous/nat-class.ts';
import { Random } from '../../../testing/random.ts';
import { seeds } from '../../support/tiered.ts';
import { ModelNat, type ModelOptions } from './nat-model.ts';

const STATION = '203.0.113.1';
const SECOND_IP = '203.0.113.2';
const OWN = ['192.168.1.5', '2001:db8::5'];
const MAIN = 40_000;

/**
 * Samples as `classifyNat` expects them: the main socket twice, then three more sockets, with pauses of up to 40 ms.
 */
function survey(
  random: Random,
  options: ModelOptions,
  second = STATION,
): { report: NatReport; samples: NatSample[]; nat: ModelNat; now: number } {
  const nat = new ModelNat(random, options);
  let now = 10_000;
  const pass = (most: number): number => {
    now += random.fraction() * most;
    return now;
  };
  const samples = [nat.sample(MAIN, STATION, 4433, now), nat.sample(MAIN, second, 4434, pass(40))];
  for (let i = 1; i <= 3; i++) samples.push(nat.sample(MAIN + 7 * i, STATION, 4434, pass(40)));
  return { report: classifyNat(samples, OWN, pass(100)), samples, nat, now };
}

const sample = (local: number, toPort: number, port: number, at: number, address = '198.51.100.7'): NatSample => ({
  local,
  to: STATION,
  toPort,
  mapped: { address, port },
  at,
});

/** A sample of the main socket to port 1, then ports of new mappings, 20 ms apart. */
const mappings = (...ports: number[]): NatSample[] => ports.map((port, i) => sample(i === 0 ? MAIN : MAIN + i - 1, i + 1, port, 20 * i));

describe('the class of a NAT', () => {
  test('is none when our own address and port are observed, for any number of samples', () => {
    expect(classifyNat([sample(MAIN, 1, MAIN, 0, '192.168.1.5')], OWN, 9)).toEqual({ mapping: 'none' });
    expect(classifyNat([sample(MAIN, 1, MAIN, 0, '2001:db8::5')], OWN, 9)).toEqual({ mapping: 'none' });
  });

  test('is not none for our address with another port, or another address with our port', () => {
    expect(classifyNat([sample(MAIN, 1, 1234, 0, '192.168.1.5')], OWN, 9).mapping).toBe('unknown');
    expect(classifyNat([sample(MAIN, 1, MAIN, 0)], OWN, 9).mapping).toBe('unknown');
  });

  test('is unknown unless a socket asked two destinations', () => {
    expect(classifyNat([], OWN, 0)).toEqual({ mapping: 'unknown' });
    expect(classifyNat([sample(MAIN, 1, 5000, 0), sample(MAIN, 1, 5000, 9)], OWN, 9).mapping).toBe('unknown');
    expect(classifyNat([sample(1, 1, 5000, 0), sample(2, 1, 5001, 1), sample(3, 1, 5002, 2)], OWN, 9).mapping).toBe('unknown');
  });

  test('is independent when two destinations observe the same', () => {
    expect(classifyNat([sample(MAIN, 1, 5000, 0), sample(MAIN, 2, 5000, 1)], OWN, 9)).toEqual({ mapping: 'independent' });
  });

  test('is dependent when the address differs and the port does not', () => {
    const samples = [sample(MAIN, 1, 5000, 0), sample(MAIN, 2, 5000, 1, '198.51.100.8')];
    expect(classifyNat(samples, OWN, 9)).toEqual({ mapping: 'random' });
  });

  test('follows a changed mapping: the newest sample of a destination counts', () => {
    const samples = [sample(MAIN, 1, 5000, 0), sample(MAIN, 2, 6000, 90_000), sample(MAIN, 1, 6000, 90_010)];
    expect(classifyNat(samples, OWN, 90_020).mapping).toBe('independent');
    expect(classifyNat(samples.toReversed(), OWN, 90_020).mapping).toBe('independent');
  });

  test('of IPv4 is not that of IPv6', () => {
    const v6 = [sample(MAIN, 1, MAIN, 0, '2001:db8::5'), sample(MAIN, 2, MAIN, 0, '2001:db8::5')];
    expect(classifyNat([...v6, sample(MAIN, 1, 5000, 0), sample(MAIN, 2, 5000, 1)], OWN, 9).mapping).toBe('independent');
    expect(classifyNat([...v6, sample(MAIN, 1, 5000, 0)], OWN, 9).mapping).toBe('unknown');
  });

  test('is found for each mapping and port allocation, by seed', () => {
    const cases: [ModelOptions, string][] = [
      [{ mapping: 'independent', ports: 'preserve' }, 'independent'],
      [{ mapping: 'independent', ports: 'sequential' }, 'independent'],
      [{ mapping: 'independent', ports: 'random' }, 'independent'],
      [{ mapping: 'address-port', ports: 'sequential' }, 'sequential'],
      [{ mapping: 'address-port', ports: 'random' }, 'random'],
      [{ mapping: 'address', ports: 'sequential' }, 'independent'],
    ];
    for (const seed of seeds(1, 150)) {
      for (const [options, expected] of cases) {
        const { report } = survey(new Random(`class ${seed}`), options);
        expect(report.mapping, `${seed} ${options.mapping} ${options.ports}`).toBe(expected);
      }
    }
  });

  test('is found to depend on the address alone by a second address of the station', () => {
    const { report } = survey(new Random('address'), { mapping: 'address', ports: 'sequential' }, SECOND_IP);
    expect(report.mapping).toBe('sequential');
  });

  test('has no stride when ports are preserved', () => {
    const kept = [1, 2, 3].map((i) => sample(MAIN + i, 2, MAIN + i, 20 + i));
    expect(classifyNat([sample(MAIN, 1, MAIN, 0), sample(MAIN, 2, 61_000, 10), ...kept], OWN, 50)).toEqual({ mapping: 'random' });
  });
});

describe('a sequential NAT', () => {
  const strides = [1, 2, 3, 7, 64, 4096, 20_000, -1, -2, -10, -20_000];

  test('may have any constant stride, and its report has the last port and its age', () => {
    for (const stride of strides) {
      const { report, samples, now } = survey(new Random(`stride ${stride}`), { mapping: 'address-port', ports: 'sequential', stride });
      const newest = samples.at(-1)!;
      expect(report).toMatchObject({ mapping: 'sequential', last: newest.mapped.port, stride: (stride + 65_536) % 65_536 });
      expect(report.age).toBe(Math.round(now - newest.at));
    }
  });

  test('wraps from 65,535 to 1,024, or to 0', () => {
    expect(classifyNat(mappings(65_533, 65_534, 65_535, 1024, 1025), OWN, 90)).toEqual({
      mapping: 'sequential',
      last: 1025,
      stride: 1,
      age: 10,
    });
    expect(classifyNat(mappings(65_534, 65_535, 0, 1), OWN, 90)).toMatchObject({ mapping: 'sequential', last: 1, stride: 1 });
    expect(classifyNat(mappings(1026, 1024, 65_534, 65_532), OWN, 90)).toMatchObject({
      mapping: 'sequential',
      last: 65_532,
      stride: 65_534,
    });
  });

  test('may assign up to seven ports in between to foreign flows', () => {
    expect(classifyNat(mappings(5000, 5008, 5009, 5011), OWN, 90)).toMatchObject({ mapping: 'sequential', stride: 1 });
    expect(classifyNat(mappings(5000, 5024, 5027, 5030), OWN, 90)).toMatchObject({ mapping: 'sequential', stride: 3 });
    expect(classifyNat(mappings(5000, 5009, 5010), OWN, 90)).toEqual({ mapping: 'random' });
    expect(classifyNat(mappings(5000, 5008, 5011), OWN, 90), 'multiples 8 and 3').toMatchObject({ stride: 1 });
  });

  test('needs three new mappings in one direction', () => {
    expect(classifyNat(mappings(5000, 5001), OWN, 90)).toEqual({ mapping: 'random' });
    expect(classifyNat(mappings(5000, 5001, 5000), OWN, 90)).toEqual({ mapping: 'random' });
    expect(classifyNat([sample(MAIN, 1, 5000, 0), sample(MAIN, 2, 5001, 1), sample(MAIN + 1, 2, 5001, 2)], OWN, 9).mapping).toBe('random');
  });

  test('is recognised by the newest mappings, despite older ones or a burst', () => {
    const old = sample(MAIN, 1, 1111, -3_600_000);
    expect(classifyNat([old, ...mappings(5000, 5001, 5003).slice(1), sample(9, 9, 5004, 60)], OWN, 90).mapping).toBe('sequential');
    expect(classifyNat([old, sample(MAIN, 2, 5000, 0), sample(8, 2, 5001, 20), sample(9, 2, 5003, 40)], OWN, 90).mapping).toBe(
      'sequential',
    );
    expect(classifyNat(mappings(5000, 5040, 5041, 5042), OWN, 90).mapping).toBe('sequential');
  });

  test('is not recognised when mappings are a second apart or have two addresses', () => {
    const far = [0, 1001, 2002, 3003].map((at, i) => sample(i === 0 ? MAIN : MAIN + i - 1, i + 1, 5000 + i, at));
    expect(classifyNat(far, OWN, 3100)).toEqual({ mapping: 'random' });
    const two = mappings(5000, 5001, 5002).map((one, i) => ({ ...one, mapped: { ...one.mapped, address: `198.51.100.${i}` } }));
    expect(classifyNat(two, OWN, 90)).toEqual({ mapping: 'random' });
  });

  test('is recognised in the order of the requests, or of the list for requests of one millisecond', () => {
    expect(classifyNat(mappings(5000, 5001, 5002, 5003).toReversed(), OWN, 90)).toMatchObject({ last: 5003, stride: 1 });
    const at = (sampled: NatSample): NatSample => ({ ...sampled, at: 7 });
    expect(classifyNat(mappings(5003, 5002, 5001, 5000).map(at), OWN, 90)).toMatchObject({ last: 5000, stride: 65_535, age: 83 });
  });

  test('is recognised with 5 foreign flows a second, nearly always with its stride', () => {
    const runs = seeds(1, 1_000);
    const reports = runs.map(
      (seed) => survey(new Random(`foreign ${seed}`), { mapping: 'address-port', ports: 'sequential', foreign: 5 }).report,
    );
    expect(reports.filter(({ mapping }) => mapping === 'sequential').length / runs.length).toBeGreaterThan(0.99);
    expect(reports.filter(({ stride }) => stride === 1).length / runs.length).toBeGreaterThan(0.97);
  });

  test('is hardly ever found in random ports, nor in three samples of them', { tags: ['slow'] }, () => {
    const runs = seeds(1, 5_000);
    const random = new Random('random ports');
    const port = (): number => 1024 + Math.floor(random.fraction() * 64_512);
    const wrong = runs.filter(() => classifyNat(mappings(port(), port(), port()), OWN, 90).mapping !== 'random').length;
    expect(wrong).toBeLessThanOrEqual(Math.ceil(runs.length / 1_000));
  });
});
