/** Names of the events of a connection, in the order in which they come. */
import type { Connection, ConnectionEvents } from '../../client/node.ts';

const NAMES: readonly (keyof ConnectionEvents)[] = ['waiting', 'open', 'path', 'rest', 'resume', 'cramped', 'relieved', 'close'];

/** @param events those of `connection` are added @returns them */
export function recordEvents(connection: Pick<Connection, 'on'>, events: string[] = []): string[] {
  for (const name of NAMES) connection.on(name, () => events.push(name));
  return events;
}
