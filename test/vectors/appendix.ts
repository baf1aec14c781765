/**
 * Text of the test vectors in PROTOCOL.md, both ways. A vector is a label and a value, and the label is unique in the
 * appendix:
 *
 *     label = "text"
 *     label = 42
 *     label =
 *       00112233…      32 bytes to a line
 *
 * `render` writes sections, `parse` reads the values back from the code blocks. This file does not know what they mean.
 */

/** Bytes, a text, or a number. */
export type Value = Uint8Array | string | number;

/** One section of the appendix. */
export interface Section {
  readonly title: string;
  /** Paragraphs before the values. */
  readonly text: readonly string[];
  readonly values: Readonly<Record<string, Value>>;
}

/** First line of the appendix; everything after it belongs to the appendix. */
export const HEADING = '## Appendix A. Test vectors';

const BYTES_PER_LINE = 32;
/** Of Markdown. */
const COLUMNS = 120;

/** The appendix as Markdown, from its heading to its last line. */
export function render(introduction: readonly string[], sections: readonly Section[]): string {
  const parts = sections.map(({ title, text, values }, index) => {
    const lines = Object.entries(values).map(([label, value]) => renderValue(label, value));
    return [`### A.${index + 1} ${title}`, ...text.map(wrapped), ['```text', ...lines, '```'].join('\n')].join('\n\n');
  });
  return `${[HEADING, ...introduction.map(wrapped), ...parts].join('\n\n')}\n`;
}

/** The appendix of a document: from its heading to the end of the document. Empty when it has none. */
export function appendixOf(document: string): string {
  const start = document.indexOf(`${HEADING}\n`);
  return start < 0 ? '' : document.slice(start);
}

/** Reads the values of an appendix by label. @throws Error for a line that is not a value, and for a repeated label */
export function parse(appendix: string): Map<string, Value> {
  const values = new Map<string, Value>();
  for (const [, block = ''] of appendix.matchAll(/^```text\n([\s\S]*?)^```$/gm)) {
    for (const [, label = '', value = ''] of entries(block)) {
      if (values.has(label)) throw new Error(`the label "${label}" comes twice`);
      values.set(label, parseValue(value));
    }
  }
  return values;
}

function wrapped(paragraph: string): string {
  const lines: string[] = [];
  for (const word of paragraph.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > COLUMNS) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.join('\n');
}

function renderValue(label: string, value: Value): string {
  if (typeof value === 'string') return `${label} = ${JSON.stringify(value)}`;
  if (typeof value === 'number') return `${label} = ${value}`;
  const lines: string[] = [];
  for (let at = 0; at < value.length; at += BYTES_PER_LINE) {
    lines.push(`\n  ${Buffer.from(value.subarray(at, at + BYTES_PER_LINE)).toString('hex')}`);
  }
  return `${label} =${lines.join('')}`;
}

function entries(block: string): IterableIterator<RegExpMatchArray> {
  const entry = /^(\S.*?) =((?: .+|(?:\n {2}[0-9a-f]+)*))$/gm;
  const rest = block.replace(entry, '').trim();
  if (rest !== '') throw new Error(`not a vector: ${rest}`);
  return block.matchAll(entry);
}

function parseValue(text: string): Value {
  if (text.startsWith(' ')) return JSON.parse(text) as string | number;
  return new Uint8Array(Buffer.from(text.replace(/\s/g, ''), 'hex'));
}
