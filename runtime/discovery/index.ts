/**
 * Discovery on the local network: a device's announcements and a client's search, over the links of a host (PROTOCOL.md
 * §11).
 */
export { MdnsBrowser } from './browser.ts';
export { type FindDeviceOptions, findDevice } from './find-device.ts';
export { type LinkPart, MdnsLinks } from './links.ts';
