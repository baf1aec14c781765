/** Gives a route back to the base station, which would otherwise keep it until its channel ends or nothing has moved on it for minutes. */
import { type ClientPath, CONTENT_FORMAT_CBOR, type DevicePath, encodeRouteRelease } from '../../protocol/control/index.ts';
import type { Session } from '../session/session.ts';

/**
 * Tells the station that this end does not use the route any more. Nothing depends on the answer: an older station does not know the request.
 * @param route this end's 8-byte id of it
 */
export function releaseRoute(channel: Session, path: typeof ClientPath.ROUTE | typeof DevicePath.ROUTE, route: Uint8Array): void {
  const request = { method: 'DELETE', path, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeRouteRelease(route) } as const;
  channel.request(request).catch(() => {});
}
