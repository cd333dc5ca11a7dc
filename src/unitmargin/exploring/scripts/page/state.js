/**
 * What the page shows, as a link tells it: a test sample or a blank page, the entries that were
 * changed, and the noise: its size as a share of the radius, and its direction.
 */

export const BLANK = "blank";

/** Of a new visitor's noise: visible, and inside the radius. */
const SHARE = 0.95;

const MOST_CHANGES = 100000;

export function firstState(subject) {
  return { sample: subject.first, changes: new Map(), share: SHARE, towards: "random", seed: 1 };
}

/** The input: a stored sample, or the lowest value everywhere, with changed entries. */
export function inputOf({ sample, changes }, subject) {
  const { size, inputs, indices, low } = subject;
  const row = indices.indexOf(sample);
  const x =
    row < 0
      ? new Float64Array(size).fill(low)
      : Float64Array.from(inputs.subarray(row * size, (row + 1) * size));
  for (const [place, value] of changes) x[place] = value;
  return x;
}

/** One entry of the input. */
export function entryOf(state, subject, place) {
  return state.changes.get(place) ?? storedEntry(state, subject, place);
}

function storedEntry({ sample }, { size, inputs, indices, low }, place) {
  const row = indices.indexOf(sample);
  return row < 0 ? low : inputs[row * size + place];
}

/** Remembers an entry that differs from the stored one, and forgets one that is as it was. */
export function changeEntry(state, subject, place, value) {
  state.changes.delete(place);
  if (storedEntry(state, subject, place) !== value) state.changes.set(place, value);
}

export function toFragment({ sample, changes, share, towards, seed }) {
  const parts = [`sample=${sample}`];
  // A plus, of 1e+21, would be read as a blank.
  const told = [...changes].map((pair) => pair.join(":").replace("+", ""));
  if (told.length) parts.push(`change=${told.join(",")}`);
  parts.push(`noise=${Number(share.toPrecision(6))}`);
  parts.push(towards === "closest" ? "towards=closest" : `seed=${seed}`);
  return `#${parts.join("&")}`;
}

/**
 * The state that a fragment tells; what it does not tell, or tells wrong, is that of a new
 * visitor.
 */
export function fromFragment(fragment, subject) {
  const state = firstState(subject);
  const told = new URLSearchParams(fragment.replace(/^#/, ""));
  const sample = told.get("sample");
  if (sample === BLANK && subject.kind === "image") state.sample = BLANK;
  else if (subject.indices.includes(Number(sample ?? NaN))) state.sample = Number(sample);
  for (const pair of (told.get("change") ?? "").split(",").slice(0, MOST_CHANGES)) {
    const [place, value] = pair.split(":").map(Number);
    const known = Number.isInteger(place) && place >= 0 && place < subject.size;
    if (known && pair.includes(":") && value >= subject.low && value <= subject.high) {
      state.changes.set(place, value);
    }
  }
  const share = Number(told.get("noise") ?? NaN);
  if (share >= 0 && share < 1e6) state.share = share;
  const seed = Number(told.get("seed") ?? NaN);
  if (Number.isInteger(seed) && seed > 0 && seed < 2 ** 32) state.seed = seed;
  if (told.get("towards") === "closest") state.towards = "closest";
  return state;
}
