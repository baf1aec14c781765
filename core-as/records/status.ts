/** Results of frame handling other than a transport error code. */

/** Not an error code: drop the packet unacknowledged. */
export const REFUSED: u32 = 0xffff_ffff;
