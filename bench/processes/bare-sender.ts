/** Bench process: sends datagrams of one size for a given time, a fixed number under way, with nothing around it. */
import { createSocket } from 'node:dgram';
import { serve } from './child.ts';

const FLIGHT = 64;

serve({
  async send({ port, size, milliseconds }: { port: number; size: number; milliseconds: number }) {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.connect(port, '127.0.0.1', resolve));
    const packet = new Uint8Array(size);
    const end = performance.now() + milliseconds;
    await new Promise<void>((resolve, reject) => {
      let under = 0;
      const next = (error: Error | null): void => {
        under--;
        if (error) reject(error);
        else if (performance.now() < end) send();
        else if (under === 0) resolve();
      };
      const send = (): void => {
        under++;
        socket.send(packet, next);
      };
      for (let index = 0; index < FLIGHT; index++) send();
    });
    socket.close();
  },
});
