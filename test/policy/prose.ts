/**
 * What a person reads in the repository: comments, texts of three words or more (messages, help, names of tests), and
 * Markdown. Extracted line by line, without a parser, so that a line of AssemblyScript counts like any other.
 */

/** One line of prose. */
export interface ProseLine {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

/** Phrases without a right use here, and what to write. */
export const PHRASES: readonly (readonly [RegExp, string])[] = [
  [/\bwho(so)?ever\b/i, 'the peer, client, caller or reader that is meant'],
  [/\b(nobody|somebody|anybody)\b/i, 'the actor: no client, an attacker, any peer'],
  [/\b(that|to|for|of|by|with|from|than|as|and|or|if|when) who\b/i, 'the actor in place of "who"'],
  [/\bno more\b(?=[.,;:)]|$)/i, 'no longer'],
  [/\b(go|goes|went|gone) over to\b/i, 'switches to'],
  [/\b(go|goes|went|gone|going) on\b/i, 'continues, resumes'],
  [/\bof (ours|theirs)\b/i, "our own, the peer's"],
  [/\banew\b/i, 'again'],
  [/\bfrom afar\b/i, 'remotely'],
  [/\b(tell|tells|told|telling)\b(?![^.]{0,60}\b(apart|from)\b)/i, 'emit, report, return, log, show'],
  [/\bso many\b/i, 'the number, or its name'],
  [/\b(un)?proven\b/i, 'validated (RFC 9000 §8)'],
  [/\bhalf[- ]dead\b/i, 'failover'],
  [/\b3 × limit\b/i, 'anti-amplification limit (RFC 9000 §8)'],
  [/\bsize search\b/i, 'path MTU discovery (RFC 8899)'],
  [/\bhas (no|a) part in\b/i, 'does not apply'],
  [/\bcomes? to nothing\b/i, 'fails'],
];

/** Documents outside the repository. */
export const CITATIONS: readonly RegExp[] = [
  /\binterface\.md\b/i,
  /\breference-behaviou?r\b/i,
  /\breference (system|SDK|platform|§)/i,
  /\(reference\b/i,
  /\b(the|as the) reference(['’]s)?(?= (does|has|have|takes|answers|refuses|documents|word|order|wrappers|client|server|device|allows|names)\b|[,;.)])/i,
  /\bspecification §/i,
];

const COMMENT = /^\s*(\/\/|\/?\*|# )/;
/** Comments, texts, and regular expressions, whose quotes begin no text. */
const TOKEN =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`|(?<=[=(,:!&|?[{};]\s*|return )\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/g;
const REGEXP = /^\/(?![*/])/;

/** The prose of a file, by its ending. */
export function proseOf(file: string, source: string): ProseLine[] {
  const lines = source.split('\n').map((text, index) => ({ file, line: index + 1, text }));
  if (file === '.ci/run') return lines.filter(({ text }) => /^\s*#/.test(text));
  return file.endsWith('.md') ? outsideCode(lines) : proseOfCode(file, source);
}

/**
 * Lines of comments and of Markdown beyond 120 columns. Tables, code, links and generated addresses stay as long as
 * they are.
 */
export function tooWide(file: string, source: string): ProseLine[] {
  const wide = ({ text }: ProseLine): boolean => text.length > 120 && !/https?:\/\/\S{60,}|biome-ignore/.test(text);
  const lines = source.split('\n').map((text, index) => ({ file, line: index + 1, text }));
  if (!file.endsWith('.md')) return lines.filter((line) => COMMENT.test(line.text) && wide(line));
  return outsideCode(lines).filter((line) => wide(line) && !/^\s*\||^ {4}\S|^\[[^\]]+\]:/.test(line.text));
}

/** The first refused phrase of a line outside code spans, with what to write; null when there is none. */
export function refused({ text }: ProseLine): string | null {
  const withoutCode = text.replace(/`[^`]*`/g, '``');
  for (const [phrase, better] of PHRASES) {
    const found = phrase.exec(withoutCode);
    if (found !== null) return `"${found[0]}": write ${better}`;
  }
  return null;
}

/** Comments and texts of a whole file; a text may have several lines. Expressions in templates are left out. */
function proseOfCode(file: string, source: string): ProseLine[] {
  const found: ProseLine[] = [];
  let line = 1;
  let from = 0;
  for (const { 0: token, index } of source.matchAll(TOKEN)) {
    line += source.slice(from, index).split('\n').length - 1;
    from = index;
    if (REGEXP.test(token)) continue;
    const isComment = token.startsWith('//') || token.startsWith('/*');
    const isTemplate = token.startsWith('`');
    const text = isTemplate ? token.slice(1, -1).replaceAll(/\$\{[^}]*\}/g, '…') : token;
    if (!isComment && text.trim().split(/\s+/).length < 2) continue;
    for (const [offset, each] of text.split('\n').entries())
      found.push({ file, line: line + offset, text: isComment ? each.replace(/^\s*(\/\/|\/?\*+\/?)/, '') : each });
  }
  return found;
}

function outsideCode(lines: readonly ProseLine[]): ProseLine[] {
  let isCode = false;
  return lines.filter(({ text }) => {
    const isFence = /^\s*```/.test(text);
    if (isFence) isCode = !isCode;
    return !isFence && !isCode;
  });
}
