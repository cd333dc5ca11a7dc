/** Numbers as words. */

const DIGITS = 4;

/** At most four digits, rounded down: a larger radius was not proved. */
export function roundedDown(number) {
  return rounded(number, Math.floor);
}

/** At most four digits, rounded up: no closer point was found. */
export function roundedUp(number) {
  return rounded(number, Math.ceil);
}

function rounded(number, towards) {
  if (!(number > 0) || !Number.isFinite(number)) return String(number);
  const places = DIGITS - 1 - Math.floor(Math.log10(number));
  if (places > 12 || places < -12) return number.toExponential(DIGITS - 1);
  const unit = 10 ** places;
  // The nearest double of 0.57 times 100 is below 57, which is no reason to say 0.56.
  const near = Math.round(number * unit);
  const whole = Math.abs(near - number * unit) < 1e-9 * near ? near : towards(number * unit);
  return (whole / unit).toFixed(Math.max(places, 0));
}

/** A share in per cent, with two digits where it is small. */
export function percent(share) {
  const value = 100 * share;
  const places = value >= 10 || value === 0 ? 0 : value >= 1 ? 1 : 2;
  return `${value.toFixed(places)}\u00a0%`;
}

export function count(number) {
  return number.toLocaleString("en");
}

/** Some digits, without zeros at the end. */
export function plain(number, digits = 6) {
  return String(Number(number.toPrecision(digits)));
}

/** Begins and ends what is bold: no name of a class has it. */
const MARK = "\u0002";

export function bold(text) {
  return MARK + unmarked(text) + MARK;
}

/** The text alone. */
export function unmarked(text) {
  return text.replaceAll(MARK, "");
}

/** Text with its bold parts, put into an element. */
export function say(element, text) {
  const parts = text.split(MARK).map((part, place) => {
    if (place % 2 === 0) return part;
    const strong = document.createElement("b");
    strong.textContent = part;
    return strong;
  });
  element.replaceChildren(...parts);
}
