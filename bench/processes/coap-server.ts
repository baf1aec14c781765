/** Bench process: the resource of the bench's device, served by the `coap` package over plain UDP. */
import { createServer } from 'coap';
import { serve } from './child.ts';

serve({
  listen: () =>
    new Promise<number>((resolve) => {
      const server = createServer((_request, response) => {
        response.code = '2.05';
        response.end('21.5');
      });
      server.listen(0, '127.0.0.1', () => {
        const { _port } = server as unknown as { _port: number };
        const { _sock } = server as unknown as { _sock: { address(): { port: number } } | null };
        resolve(_sock?.address().port ?? _port);
      });
    }),
});
