/** Maps a port by UPnP. That needs TCP, HTTP and XML, so the platform supplies it, and only if enabled. */
import type { SocketAddress } from '../../protocol/control/index.ts';

export interface UpnpMapper {
  /**
   * Maps a UDP port at every gateway it finds and keeps it mapped. Calls `onChange` with the whole list, possibly
   * empty, whenever that changes; never rejects.
   */
  start(port: number, onChange: (mapped: readonly SocketAddress[]) => void): void;
  /**
   * Checks at once whether the gateways or our addresses there have changed: mappings at lost ones end, and the search
   * restarts.
   */
  refresh(): void;
  /** Stops, and deletes the mappings as far as the routers cooperate. `onChange` is no longer called. */
  close(): Promise<void>;
}
