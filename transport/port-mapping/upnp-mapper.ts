/** What maps a port by UPnP. It needs TCP, HTTP and XML, so the host brings it, and only where it was asked for. */
import type { SocketAddress } from '../../protocol/control/index.ts';

export interface UpnpMapper {
  /**
   * Maps a UDP port at every gateway it finds and keeps it mapped. Calls `onChange` with the whole list, possibly empty, whenever that changes; never rejects.
   */
  start(port: number, onChange: (mapped: readonly SocketAddress[]) => void): void;
  /** Checks at once whether the gateways or our addresses there are others than before: mappings at those that are gone end, and it searches again. */
  refresh(): void;
  /** Stops, and deletes the mappings as far as the routers take part. `onChange` is no longer called. */
  close(): Promise<void>;
}
