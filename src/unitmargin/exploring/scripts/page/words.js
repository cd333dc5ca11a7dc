/** Numbers as words. */

const DIGITS = 4;
/** Decimals of a share in per cent. */
const MOST_PLACES = 9;
/** Digits of a value, and how many a double has. */
const [LEAST_DIGITS, MOST_DIGITS] = [6, 17];

/** At most four digits, rounded down: a larger radius was not proved. */
export function roundedDown(number) {
  return rounded(number, false);
}

/** At most four digits, rounded up: no closer point was found. */
export function roundedUp(number) {
  return rounded(number, true);
}

function rounded(number, up) {
  if (!(number > 0) || !Number.isFinite(number)) return String(number);
  const places = DIGITS - 1 - exponentOf(number);
  const short = cut(number, places, up);
  if (places > 12 || places < -12) return short.toExponential(DIGITS - 1);
  return short.toFixed(Math.max(places, 0));
}

/** A share in per cent, with two digits where it is small, rounded down: no more was proved. */
export function percent(share) {
  const places = share > 0 ? Math.min(Math.max(-1 - exponentOf(share), 0), MOST_PLACES) : 0;
  return `${(100 * cut(share, places + 2, false)).toFixed(places)}\u00a0%`;
}

/** The power of ten of a number's first digit. */
function exponentOf(number) {
  return Number(number.toExponential().split("e")[1]);
}

/**
 * The number with that many decimals, rounded towards zero or up, read off the shortest decimal
 * that is the number: 100 times the double of 0.57 is below 57, which is no reason to say 0.56.
 */
function cut(number, places, up) {
  if (!(number > 0) || !Number.isFinite(number)) return number;
  const [mantissa, exponent] = number.toExponential().split("e");
  const digits = mantissa.replace(".", "");
  const kept = Math.max(Number(exponent) + 1 + places, 0);
  if (kept >= digits.length) return number;
  return Number(`${Number(digits.slice(0, kept)) + Number(up)}e${-places}`);
}

export function count(number) {
  return number.toLocaleString("en");
}

/** Some digits, without zeros at the end. */
export function plain(number, digits = LEAST_DIGITS) {
  return String(Number(number.toPrecision(digits)));
}

/** Digits of values that move by a step: all whole ones, and down to a hundredth of the step. */
export function digitsOf(number, step = number) {
  const exponent = exponentOf(number);
  const fine = exponent - exponentOf(step) + 3;
  return Math.min(Math.max(LEAST_DIGITS, exponent + 1, fine), MOST_DIGITS);
}

/** Two different numbers with at least some digits, and as many as tell them apart. */
export function apart(numbers, least) {
  for (let digits = least; digits < MOST_DIGITS; digits++) {
    const [first, second] = numbers.map((number) => plain(number, digits));
    if (first !== second) return [first, second];
  }
  return numbers.map(String);
}

/** A place on a line, to a share of the length that is shown of it. */
export function trimmed(place, length) {
  return Number(place.toFixed(Math.min(Math.max(LEAST_DIGITS - exponentOf(length), 0), 100)));
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
