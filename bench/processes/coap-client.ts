/** Bench process: GET requests with the `coap` package over plain UDP. */
import { Agent, request } from 'coap';
import { serve } from './child.ts';

serve({
  /** Like `requests` of the client process. */
  async requests({ port, count, flight }: { port: number; count: number; flight: number }) {
    const agent = new Agent({ type: 'udp4' });
    const times: number[] = [];
    let begun = 0;
    const get = (): Promise<void> =>
      new Promise((resolve, reject) => {
        const start = performance.now();
        const outgoing = request({ hostname: '127.0.0.1', port, pathname: '/figure', confirmable: true, agent });
        outgoing.on('error', reject);
        outgoing.on('response', (response) => {
          times.push((performance.now() - start) * 1000);
          if (response.code !== '2.05') reject(new Error(`code ${response.code}`));
          else resolve();
        });
        outgoing.end();
      });
    const lane = async (): Promise<void> => {
      while (begun < count) {
        begun++;
        await get();
      }
    };
    await Promise.all(Array.from({ length: flight }, lane));
    agent.close();
    return times;
  },
});
