/** For connections whose paths a test does not read. */
export function noPaths(): never {
  throw new Error('this test does not read paths');
}
