/** Listeners of byte streams: which one gets a stream, and how the stream ends when the listener fails. */
import { describe, expect, it } from 'vitest';
import type { DeviceConnection } from '../../device/connections.ts';
import { type StreamHandler, StreamListeners } from '../../device/streams.ts';
import { silentLog } from '../../platform/environment.ts';
import { StreamCode } from '../../protocol/errors/index.ts';
import type { IncomingStream, Stream } from '../../runtime/session/index.ts';

/** The outcome of a stream to port 7 at a listener on port `port`. */
async function outcome(port: number, handler: StreamHandler): Promise<string[]> {
  const calls: string[] = [];
  const accepted = { abort: (code: number) => calls.push(`abort ${code}`) } as unknown as Stream;
  const stream = {
    port: 7,
    refuse: (code: number) => calls.push(`refuse ${code}`),
    accept: () => {
      calls.push('accept');
      return accepted;
    },
  } as unknown as IncomingStream;
  const listeners = new StreamListeners(silentLog);
  listeners.listen(port, handler);
  listeners.arrived(stream, {} as DeviceConnection);
  await new Promise((resolve) => setImmediate(resolve));
  return calls;
}

describe('a stream', () => {
  it('to a port without a listener is refused', async () => {
    expect(await outcome(8, () => {})).toEqual([`refuse ${StreamCode.STREAM_REFUSED}`]);
  });

  it('whose listener fails before it accepts is refused with SERVICE_FAILED', async () => {
    const failing = () => Promise.reject(new Error('broken'));
    expect(await outcome(7, failing)).toEqual([`refuse ${StreamCode.SERVICE_FAILED}`]);
  });

  it('whose listener fails after that is aborted with SERVICE_FAILED', async () => {
    const failing: StreamHandler = async ({ accept }) => {
      accept();
      throw new Error('broken');
    };
    expect(await outcome(7, failing)).toEqual(['accept', `abort ${StreamCode.SERVICE_FAILED}`]);
  });
});
