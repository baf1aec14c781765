/** Bench process: Node with nothing loaded but the IPC channel. */
import { serve } from './child.ts';

serve({
  resident() {
    globalThis.gc?.();
    return process.memoryUsage.rss();
  },
});
