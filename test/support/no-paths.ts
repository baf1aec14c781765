/** For connections whose paths a test does not look at. */
export function noPaths(): never {
  throw new Error('nobody asks for the paths');
}
