/**
 * QR codes in a terminal: two modules per character cell, with the quiet zone that readers need (ISO/IEC 18004 §9.1:
 * four modules).
 *
 * Readers expect dark on light, and the colours of a terminal are unknown: `colours` sets them for the code. Without it
 * light modules are drawn as blocks, which is right on a dark background; most readers also accept inverted codes.
 */
import qrcode from 'qrcode-generator';

const QUIET = 4;
const DARK_ON_LIGHT = '\u001b[38;5;16;48;5;231m';
const RESET = '\u001b[0m';
/** Characters by the upper and the lower module: drawn or not. */
const CELLS = { none: ' ', upper: '▀', lower: '▄', both: '█' };

/**
 * The lines of a QR code: 29 for the link of a usual invitation.
 * @param text up to about 1,000 bytes of UTF-8: a pairing string or link
 * @param colours whether escape sequences may set colours
 */
export function qrCode(text: string, { colours = false } = {}): string[] {
  const isDark = modules(text);
  const size = isDark.length;
  const lines: string[] = [];
  for (let y = -QUIET; y < size + QUIET; y += 2) {
    const cells = Array.from({ length: size + 2 * QUIET }, (_, i) => {
      const [upper, lower] = [y, y + 1].map((row) => (isDark[row]?.[i - QUIET] ?? false) === colours) as [boolean, boolean];
      return cell(upper, lower);
    });
    lines.push(colours ? `${DARK_ON_LIGHT}${cells.join('')}${RESET}` : cells.join(''));
  }
  return lines;
}

/**
 * Returns the rows of modules, true for dark. Error correction level L, 7 %: a screen has no dirt, and a small code
 * fits on it.
 */
function modules(text: string): boolean[][] {
  const code = qrcode(0, 'L');
  code.addData(text, 'Byte');
  code.make();
  const indices = Array.from({ length: code.getModuleCount() }, (_, i) => i);
  return indices.map((row) => indices.map((column) => code.isDark(row, column)));
}

function cell(upper: boolean, lower: boolean): string {
  if (upper) return lower ? CELLS.both : CELLS.upper;
  return lower ? CELLS.lower : CELLS.none;
}
