/** A log on standard error, one line per message: `2026-01-01T00:00:00.000Z warn text name=value …`. */
import { escaped } from '../../protocol/printable.ts';
import { type Log, type LogLevel, logLevels, logOf } from '../environment.ts';

/**
 * Returns a log.
 * @param options.level least important level that is written. Default `warn`.
 * @param options.write receives each line, including its line feed; default standard error.
 */
export function stderrLog({
  level = 'warn',
  write = (line: string) => void process.stderr.write(line),
}: {
  level?: LogLevel;
  write?: (line: string) => void;
} = {}): Log {
  const most = logLevels.indexOf(level);
  return logOf((name, message, fields) => {
    if (logLevels.indexOf(name) <= most) write(logLine(name, message, fields));
  });
}

function logLine(level: LogLevel, message: string, fields: Record<string, unknown> = {}): string {
  const pairs = Object.entries(fields).map(([name, value]) => ` ${name}=${printable(value)}`);
  return `${new Date().toISOString()} ${level} ${escaped(oneLine(message))}${pairs.join('')}\n`;
}

/**
 * Quotes a value with spaces, so that a line can be parsed again. Text from the network may be in it: characters with
 * an effect beyond their display are escaped.
 */
function printable(value: unknown): string {
  const text = oneLine(typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value)));
  return escaped(/[\s"=]/.test(text) || text === '' ? JSON.stringify(text) : text);
}

function oneLine(text: string): string {
  return text.replace(/\r?\n\s*/g, ' | ');
}
