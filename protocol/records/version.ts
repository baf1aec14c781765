/** Version of this software: what `version()` of client and device give and what SvcVersion carries. A test compares it with package.json. */

export const VERSION = '0.1.0';
