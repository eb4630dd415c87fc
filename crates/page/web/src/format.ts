/** Numbers and sizes as text. */

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

export function bytes(size: number): string {
  if (size < 1024) return `${Math.round(size)} B`;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  const at = Math.min(units.length - 1, Math.floor(Math.log2(size) / 10) - 1);
  const scaled = size / 1024 ** (at + 1);
  return `${scaled < 10 ? scaled.toFixed(1) : Math.round(scaled)} ${units[at]}`;
}

// Made once, since making one takes longer than all that it formats in a frame.
const grouped = new Intl.NumberFormat("en-US");

export const integer = (value: number) => grouped.format(value).replaceAll(",", "\u202f");

export function milliseconds(value: number): string {
  return value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`;
}

/** A number for people: about `digits` digits. */
export function number(value: number, digits = 4): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) {
    const [mantissa = "", exponent = "0"] = value.toExponential(Math.max(0, digits - 2)).split("e");
    return `${mantissa.replace(/\.?0+$/, "").replace("-", "−")}×10${power(Number(exponent))}`;
  }
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

const power = (exponent: number) => [...String(exponent)].map((c) => (c === "-" ? "⁻" : SUPERSCRIPTS[Number(c)]!)).join("");

/** The digits that tell numbers of a size apart, if the closest of them differ by `gap`. */
export const digitsOf = (size: number, gap: number) => (gap > 0 && size > 0 ? Math.min(17, Math.max(4, Math.ceil(Math.log10(size / gap)) + 2)) : 4);

/** The numbers of one axis as text: of one notation, and with the digits that tell neighbours apart. */
export function labels(values: number[]): string[] {
  const most = Math.max(...values.map(Math.abs));
  const digits = digitsOf(most, Math.min(...values.slice(1).map((value, at) => Math.abs(value - values[at]!))));
  const plain = (value: number) => (Number.isInteger(value) && Math.abs(value) >= 10_000 ? integer(value) : String(Number(value.toPrecision(digits)))).replace("-", "−");
  if (!(most >= 1e7 || (most < 1e-3 && most > 0))) return values.map(plain);
  const exponent = Math.floor(Math.log10(most));
  return values.map((value) => (value === 0 ? "0" : `${plain(Number(value.toPrecision(digits)) / 10 ** exponent)}×10${power(exponent)}`));
}

/** Round numbers between two limits. */
export function ticks(low: number, high: number, most: number): number[] {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span) || most < 1) return [];
  const raw = span / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= raw) ?? 10 * power;
  const found: number[] = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9 && found.length < 100; at++) found.push(Number((at * step).toPrecision(12)));
  return found;
}

/** Names of strangers on one line: control and direction characters are shown as what they are. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}
