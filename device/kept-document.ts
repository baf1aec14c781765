/** A JSON document that the application keeps across restarts. */
export interface KeptDocument {
  /** The document found at the start; undefined when there was none. */
  readonly stored: unknown;
  /** Replaces it as a whole. */
  save(document: unknown): Promise<void>;
}
