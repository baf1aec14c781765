/** The relay of a base station. */
export { DropOldestQueue } from './drop-oldest.ts';
export {
  defaultRouteLimits,
  type RouteChannel,
  type RouteCounters,
  type RouteEnd,
  type RouteEvent,
  type RouteLimits,
  RouteTable,
} from './route-table.ts';
