/** Bench process: a client that connects to a device again and again, over one channel to the base station. */
import { type ConnectionOptions, SvcClient } from '../../client/node.ts';
import { serve } from './child.ts';

const client = SvcClient.create();
const PrivateKey = client.createPrivateKey();

serve({
  /** Connects and closes once with each of the options, which are added to `all`. */
  async connect({ all, each }: { all: ConnectionOptions; each: ConnectionOptions[] }): Promise<void> {
    for (const options of each) {
      const connection = client.createConnection();
      connection.updateOptions({ PrivateKey, ...all, ...options });
      await connection.connect();
      await connection.close();
    }
  },
});
