/**
 * Version of this software: returned by `version()` of client and device, and sent in SvcVersion. A test compares it
 * with package.json.
 */

export const VERSION = '0.1.0';
