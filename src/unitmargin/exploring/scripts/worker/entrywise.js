/** Operators that compute each entry of their output from one entry of each input. */

import { isActive, makeTensor, placesOf, stridesOf } from "./tensors.js";

const one = () => 1;
const truth = (value) => (value ? 1 : 0);

/**
 * Values and, of each input, the slope; of equal entries `Max` takes the first and `Min` the
 * second.
 */
const FUNCTIONS = {
  Abs: { value: (a) => Math.abs(a), slopes: [(a) => (a < 0 ? -1 : 1)] },
  Sqrt: { value: (a) => Math.sqrt(a), slopes: [(a) => (a > 0 ? 0.5 / Math.sqrt(a) : 0)] },
  Add: { value: (a, b) => a + b, slopes: [one, one] },
  Sub: { value: (a, b) => a - b, slopes: [one, () => -1] },
  Mul: { value: (a, b) => a * b, slopes: [(a, b) => b, (a) => a] },
  Div: { value: (a, b) => a / b, slopes: [(a, b) => 1 / b, (a, b) => -a / (b * b)] },
  Max: {
    value: (a, b) => Math.max(a, b),
    slopes: [(a, b) => truth(a >= b), (a, b) => truth(a < b)],
  },
  Min: {
    value: (a, b) => Math.min(a, b),
    slopes: [(a, b) => truth(a < b), (a, b) => truth(a >= b)],
  },
  Equal: { value: (a, b) => truth(a === b) },
  Less: { value: (a, b) => truth(a < b) },
  LessOrEqual: { value: (a, b) => truth(a <= b) },
  GreaterOrEqual: { value: (a, b) => truth(a >= b) },
  And: { value: (a, b) => truth(a && b) },
};

export const ENTRYWISE = Object.fromEntries(
  Object.entries(FUNCTIONS).map(([name, rule]) => [name, (inputs) => entrywise(rule, inputs)]),
);

function entrywise({ value, slopes }, inputs) {
  const [first, second = first] = inputs;
  const output = makeTensor(commonShape(inputs), Boolean(slopes) && isActive(inputs));
  const [p, q] = [first, second].map((tensor) => placesIn(tensor, output));
  const run = () => {
    const [a, b, out] = [first.data, second.data, output.data];
    for (let i = 0; i < out.length; i++) out[i] = value(a[p[i]], b[q[i]]);
  };
  const pull = () => inputs.forEach((input, side) => pullTo(input, slopes[side], side ? q : p));
  const pullTo = (input, slope, places) => {
    const [a, b, given, grad] = [first.data, second.data, output.grad, input.grad];
    if (grad === null) return;
    for (let i = 0; i < given.length; i++) grad[places[i]] += slope(a[p[i]], b[q[i]]) * given[i];
  };
  return { outputs: [output], run, pull };
}

/** Entries of the first of two tensors where a condition holds, and of the second elsewhere. */
export function where(inputs) {
  const [condition, yes, no] = inputs;
  const output = makeTensor(commonShape(inputs), isActive([yes, no]));
  const [c, p, q] = inputs.map((tensor) => placesIn(tensor, output));
  const run = () => {
    const [when, a, b, out] = [condition.data, yes.data, no.data, output.data];
    for (let i = 0; i < out.length; i++) out[i] = when[c[i]] ? a[p[i]] : b[q[i]];
  };
  const pull = () => {
    for (let i = 0; i < output.data.length; i++) {
      const [grad, place] = condition.data[c[i]] ? [yes.grad, p[i]] : [no.grad, q[i]];
      if (grad !== null) grad[place] += output.grad[i];
    }
  };
  return { outputs: [output], run, pull };
}

function commonShape(inputs) {
  const rank = Math.max(...inputs.map(({ shape }) => shape.length));
  const padded = inputs.map(({ shape }) => withRank(shape, rank));
  return Array.from({ length: rank }, (_, axis) => {
    const lengths = padded.map((shape) => shape[axis]);
    return lengths.find((length) => length !== 1) ?? 1;
  });
}

function withRank(shape, rank) {
  return [...Array(rank - shape.length).fill(1), ...shape];
}

/** Which entry of a tensor each entry of the output reads: an axis of length 1 is repeated. */
function placesIn(tensor, output) {
  const shape = withRank(tensor.shape, output.shape.length);
  const strides = stridesOf(shape).map((stride, axis) => (shape[axis] === 1 ? 0 : stride));
  return placesOf(output.shape, strides);
}
