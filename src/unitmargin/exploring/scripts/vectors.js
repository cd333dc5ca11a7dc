/** Vectors: norms, steps, and random directions that are the same for the same seed. */

/** Numbers in (0, 1) from 32 bits of state: mulberry32. */
export function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return (((bits ^ (bits >>> 14)) >>> 0) + 0.5) / 4294967296;
  };
}

/** A direction of norm 1, any as likely as any other. */
export function randomDirection(length, random) {
  const direction = new Float64Array(length);
  for (let i = 0; i < length; i++) {
    direction[i] = Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
  }
  return scaledTo(direction, 1);
}

export function normOf(vector) {
  return Math.hypot(...chunksOfNorms(vector));
}

/** `Math.hypot` takes its numbers as arguments, of which there may be too many. */
function chunksOfNorms(vector) {
  const norms = [];
  for (let start = 0; start < vector.length; start += 1024) {
    norms.push(Math.hypot(...vector.subarray(start, start + 1024)));
  }
  return norms;
}

/** The same direction with another norm; zeros stay zeros. */
export function scaledTo(vector, norm) {
  const factor = norm / (normOf(vector) || 1);
  return vector.map((entry) => entry * factor);
}

export function distanceOf(first, second) {
  return normOf(first.map((entry, i) => entry - second[i]));
}

/** `start + factor * direction`. */
export function movedBy(start, direction, factor = 1) {
  return start.map((entry, i) => entry + factor * direction[i]);
}
