/**
 * `docs/vectors.json`, both ways. Appendix A of PROTOCOL.md explains it:
 *
 *     [{ "title": "Retry", "values": { "Retry token": "0011…", "Retry time": 42, "Retry address": { "text": "…" } } }]
 *
 * A string is bytes in hexadecimal. A label is unique in the file. This file does not know what the values mean.
 */

/** Bytes, a text, or a number. */
export type Value = Uint8Array | string | number;

/** One section of the vectors. */
export interface Section {
  readonly title: string;
  readonly values: Readonly<Record<string, Value>>;
}

/** The sections as the file has them. */
export function write(sections: readonly Section[]): string {
  const written = sections.map(({ title, values }) => ({
    title,
    values: Object.fromEntries(Object.entries(values).map(([label, value]) => [label, json(value)])),
  }));
  return `${JSON.stringify(written, null, 2)}\n`;
}

/** Reads the sections of the file. @throws Error for a value of another form, and for a repeated label */
export function read(file: string): readonly Section[] {
  const labels = new Set<string>();
  return (JSON.parse(file) as { title: string; values: Record<string, unknown> }[]).map(({ title, values }) => {
    const found = Object.entries(values).map(([label, value]): [string, Value] => {
      if (labels.has(label)) throw new Error(`the label "${label}" comes twice`);
      labels.add(label);
      return [label, parsed(label, value)];
    });
    return { title, values: Object.fromEntries(found) };
  });
}

/** The values of all sections by label. */
export function byLabel(sections: readonly Section[]): ReadonlyMap<string, Value> {
  return new Map(sections.flatMap(({ values }) => Object.entries(values)));
}

function json(value: Value): string | number | { text: string } {
  if (typeof value === 'number') return value;
  return typeof value === 'string' ? { text: value } : Buffer.from(value).toString('hex');
}

function parsed(label: string, value: unknown): Value {
  if (typeof value === 'number') return value;
  if (typeof value === 'string' && /^(?:[0-9a-f]{2})*$/.test(value)) return new Uint8Array(Buffer.from(value, 'hex'));
  const { text } = Object(value) as { text?: unknown };
  if (typeof text !== 'string') throw new Error(`"${label}" is not a vector`);
  return text;
}
