/** Durations and times, as people write and read them. */
import { InvalidArgumentError } from 'commander';

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * A parser of `30m`, `24h` or `7d`, from `min` to `max` ms; it returns ms.
 * @param range both limits, for the message
 */
export function duration(min: number, max: number, range: string): (text: string) => number {
  return (text) => {
    const [, count = '', unit = ''] = /^([1-9]\d{0,5})([mhd])$/.exec(text) ?? [];
    const value = Number(count) * (UNITS[unit] ?? Number.NaN);
    if (!(value >= min && value <= max)) throw new InvalidArgumentError(`Expected ${range}, such as 30m, 24h or 7d.`);
    return value;
  };
}

/** An ISO 8601 time to the minute, `2026-01-02 03:04 UTC`. */
export function minuteOf(time: string): string {
  return `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;
}
