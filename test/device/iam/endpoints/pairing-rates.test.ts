/** How often local open pairing may be tried: what a stranger uses up, and what the next client gets. */
import { describe, expect, it } from 'vitest';
import { PairingRates } from '../../../../device/iam/endpoints/pairing-rates.ts';
import { cbor, EndpointBench } from './endpoint-bench.ts';

const SECOND = 1000;

/** How many attempts of the address are admitted now. */
function admitted(rates: PairingRates, address: string, now: number): number {
  let count = 0;
  while (count < 100 && rates.take(address, now) === 0) count++;
  return count;
}

describe('attempts', () => {
  it('of one address are ten a minute', () => {
    const rates = new PairingRates();
    expect(admitted(rates, '192.168.1.7', 0)).toBe(10);
    expect(rates.take('192.168.1.7', 0)).toBe(6);
    expect(admitted(rates, '192.168.1.7', 60 * SECOND)).toBe(10);
  });

  it('of one address leave those of another alone', () => {
    const rates = new PairingRates();
    admitted(rates, '192.168.1.7', 0);
    expect(admitted(rates, '192.168.1.8', 0)).toBe(10);
  });

  it('of all addresses are thirty a minute, and an honest client gets its turn within seconds', () => {
    const rates = new PairingRates();
    let total = 0;
    for (let host = 1; host < 250; host++) total += admitted(rates, `192.168.1.${host}`, 0);
    expect(total).toBe(30);
    const wait = rates.take('192.168.1.250', 0);
    expect(wait).toBe(2);
    expect(rates.take('192.168.1.250', wait * SECOND)).toBe(0);
  });
});

describe('POST /iam/pairing/local-open', () => {
  it('is answered 4.29 above the rate, and makes no user', async () => {
    const bench = new EndpointBench();
    bench.pace = 0;
    const pair = () => bench.request('stranger', 'POST /iam/pairing/local-open', cbor({ Username: 'new' }));
    for (let attempt = 0; attempt < 10; attempt++) expect((await pair()).status).toBe(201);
    const before = bench.snapshot;
    expect(await pair()).toMatchObject({ status: 429, contentFormat: undefined, body: expect.stringContaining('try again') });
    expect(bench.snapshot).toBe(before);
    bench.pace = 6 * SECOND;
    expect((await pair()).status).toBe(201);
  });

  it('counts attempts that it evaluates: neither a bad body nor a refused caller counts', async () => {
    const bench = new EndpointBench();
    bench.pace = 0;
    for (let attempt = 0; attempt < 20; attempt++) {
      await bench.request('stranger', 'POST /iam/pairing/local-open', cbor({}));
      await bench.request('remote', 'POST /iam/pairing/local-open', cbor({ Username: 'far' }));
    }
    expect((await bench.request('stranger', 'POST /iam/pairing/local-open', cbor({ Username: 'new' }))).status).toBe(201);
  });
});

describe('a user whose token has no room at the base station', () => {
  it('is marked, for itself and for callers that may see it', async () => {
    const bench = new EndpointBench();
    bench.omitted.add('sct-ann');
    expect((await bench.request('admin', 'GET /iam/users/ann')).body).toMatchObject({ Sct: 'sct-ann', SctOmitted: true });
    expect((await bench.request('ann', 'GET /iam/me')).body).toMatchObject({ SctOmitted: true });
    expect((await bench.request('admin', 'GET /iam/users/admin')).body).not.toHaveProperty('SctOmitted');
    bench.omitted.add('token0000001');
    const created = await bench.request('admin', 'POST /iam/users', cbor({ Username: 'late' }));
    expect(created).toMatchObject({ status: 201, body: { Sct: 'token0000001', SctOmitted: true } });
  });
});
