/** Discovery on the local network: what a device announces and what a client looks for, over the links of a host (PROTOCOL.md §11). */
export { MdnsBrowser } from './browser.ts';
export { type DeviceCandidate, type FindDeviceOptions, findDevice } from './find-device.ts';
export { type LinkPart, MdnsLinks } from './links.ts';
