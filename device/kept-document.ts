/** A JSON document that is kept over restarts, wherever the application keeps it. */
export interface KeptDocument {
  /** As it was found at the start; undefined when there was none. */
  readonly stored: unknown;
  /** Replaces it as a whole. */
  save(document: unknown): Promise<void>;
}
