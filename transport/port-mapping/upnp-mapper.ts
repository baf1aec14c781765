/** What maps a port by UPnP. It needs TCP, HTTP and XML, so the host brings it, and only where it was asked for. */
import type { SocketAddress } from '../../protocol/control/index.ts';

export interface UpnpMapper {
  /**
   * Maps a UDP port at every gateway it finds and keeps it mapped. Calls `onChange` with the whole list, possibly empty, whenever that changes; never rejects.
   */
  start(port: number, onChange: (mapped: readonly SocketAddress[]) => void): void;
  /** Deletes the mappings and stops. `onChange` is not called any more. */
  close(): Promise<void>;
}
