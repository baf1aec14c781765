/** Lab process: one client, which connects again and again to the same device. */
import { serve } from '../../../dist/bench/processes/child.js';
import { SvcClient } from '../../../dist/client/node.js';

const client = SvcClient.create();

serve({
  /**
   * Connects and makes a request. @returns ms from the beginning until its answer, and how the base station was reached
   */
  async firstAnswer({ options }) {
    const begun = performance.now();
    const connection = client.createConnection();
    connection.updateOptions(options);
    await connection.connect();
    const { status } = await connection.get('/thermostat/target');
    if (status !== 205) throw new Error(`the device answered ${status}`);
    const took = performance.now() - begun;
    const { station } = connection.paths();
    await connection.close();
    return { took, station };
  },
});
