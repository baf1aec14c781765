/**
 * Records and names that both ends use: ids, pairing, tunnel service, device details, settings, users and their
 * settings, version.
 */
export { CONTENT_FORMAT_CBOR } from '../control/paths.ts';
export * from '../control/relayed.ts';
export * from './binary-form.ts';
export * from './device-details.ts';
export * from './host-port.ts';
export * from './ids.ts';
export * from './join-string.ts';
export * from './pairing-bytes.ts';
export * from './pairing-link.ts';
export * from './pairing-request.ts';
export * from './pairing-string.ts';
export * from './settings.ts';
export * from './station-document.ts';
export * from './tunnel-service.ts';
export * from './user.ts';
export * from './values.ts';
export * from './version.ts';
