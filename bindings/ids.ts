/** The connection ids of both ends, as the core reports them (core-as/exports/paths.ts, connectionIds). */

/** Bytes of a connection id, and of a reset token. */
export const ID_LENGTH = 8;
const TOKEN_LENGTH = 16;

/** The ids that both ends may use now, besides or instead of the first two. */
export interface ConnectionIds {
  /** How many more of our ids the peer may get. */
  room: number;
  ours: Uint8Array[];
  /** Without the token of the peer's first id, which the handshake carried. */
  theirs: { id: Uint8Array; resetToken: Uint8Array }[];
}

/** @param copyOut returns the first bytes of the transfer area */
export function readIds([room = 0, ours = 0, theirs = 0]: Float64Array, copyOut: (length: number) => Uint8Array): ConnectionIds {
  const bytes = copyOut(ours * ID_LENGTH + theirs * (ID_LENGTH + TOKEN_LENGTH));
  const at = (index: number) => ours * ID_LENGTH + index * (ID_LENGTH + TOKEN_LENGTH);
  return {
    room,
    ours: Array.from({ length: ours }, (_, index) => bytes.slice(index * ID_LENGTH, (index + 1) * ID_LENGTH)),
    theirs: Array.from({ length: theirs }, (_, index) => ({
      id: bytes.slice(at(index), at(index) + ID_LENGTH),
      resetToken: bytes.slice(at(index) + ID_LENGTH, at(index + 1)),
    })),
  };
}
