/**
 * Releases a route at the base station, which otherwise keeps it until its channel ends or it has been unused for
 * minutes.
 */
import { type ClientPath, CONTENT_FORMAT_CBOR, type DevicePath, encodeRouteRelease } from '../../protocol/control/index.ts';
import type { Session } from '../session/session.ts';

/**
 * Notifies the station that this end no longer uses the route. Nothing depends on the answer.
 * @param route this end's 8-byte id of it
 */
export function releaseRoute(channel: Session, path: typeof ClientPath.ROUTE | typeof DevicePath.ROUTE, route: Uint8Array): void {
  const request = { method: 'DELETE', path, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeRouteRelease(route) } as const;
  channel.request(request).catch(() => {});
}
