/** Detection of a network change or a sleep, without IO (docs/transport.md §7). */
export {
  type HostInterface,
  LOOK_INTERVAL,
  type LookTime,
  type NetworkEvent,
  NetworkMonitor,
  type NetworkSnapshot,
} from './network-monitor.ts';
