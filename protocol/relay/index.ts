/** The relay of a base station. */
export { DropOldestQueue } from './drop-oldest.ts';
export { RESET_TOKEN_LENGTH, ROUTE_ID_LENGTH, RouteIds } from './route-id.ts';
export {
  defaultRouteLimits,
  RESET_LENGTH,
  RESET_PACKET,
  ROUTE_HEADER_LENGTH,
  ROUTE_PACKET,
  type RouteChannel,
  type RouteCounters,
  type RouteEnd,
  type RouteLimits,
  RouteTable,
  reset,
} from './route-table.ts';
export { TokenBucket } from './token-bucket.ts';
