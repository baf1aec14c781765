/** A stream of a session once the peer has accepted it; rejects with every error of the opening. */
import type { Session, Stream, StreamOptions } from '../../runtime/session/index.ts';

export async function openedStream({ streams }: Pick<Session, 'streams'>, port: number, options?: StreamOptions): Promise<Stream> {
  const stream = streams.open(port, options);
  await stream.opened;
  return stream;
}
