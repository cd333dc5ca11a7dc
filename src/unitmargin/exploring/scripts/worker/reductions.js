/** Operators that make one number of all along an axis, and the one that sorts them. */

import { axisOf, makeTensor } from "./tensors.js";

export const REDUCTIONS = {
  ReduceSum: ([x, axes], { keepdims }) => sum(x, axes.data[0], keepdims),
  ReduceMax: ([x, axes], { keepdims }) => extreme(x, axes.data[0], keepdims, (a, b) => a > b),
  ReduceMin: ([x, axes], { keepdims }) => extreme(x, axes.data[0], keepdims, (a, b) => a < b),
  ArgMax: argMax,
  TopK: sorted,
};

function reducedShape(shape, axis, keepdims) {
  return keepdims
    ? shape.map((n, at) => (at === axis ? 1 : n))
    : shape.filter((_, at) => at !== axis);
}

/** Calls `visit(first, target)` with the first of each row of numbers and where its result goes. */
function eachRow({ outer, length, inner }, visit) {
  for (let block = 0; block < outer; block++) {
    for (let i = 0; i < inner; i++) visit(block * length * inner + i, block * inner + i);
  }
}

function sum(x, axis, keepdims) {
  const layout = axisOf(x.shape, axis);
  const { length, inner } = layout;
  const output = makeTensor(reducedShape(x.shape, axis, keepdims), x.grad !== null);
  const run = () =>
    eachRow(layout, (first, target) => {
      let total = 0;
      for (let k = 0; k < length; k++) total += x.data[first + k * inner];
      output.data[target] = total;
    });
  const pull = () =>
    eachRow(layout, (first, target) => {
      for (let k = 0; k < length; k++) x.grad[first + k * inner] += output.grad[target];
    });
  return { outputs: [output], run, pull };
}

/** The first of those entries of a row of numbers that no other one beats. */
function winner(data, first, length, step, beats) {
  let best = 0;
  for (let k = 1; k < length; k++) {
    if (beats(data[first + k * step], data[first + best * step])) best = k;
  }
  return best;
}

function extreme(x, axis, keepdims, beats) {
  const layout = axisOf(x.shape, axis);
  const { length, inner } = layout;
  const output = makeTensor(reducedShape(x.shape, axis, keepdims), x.grad !== null);
  const chosen = new Int32Array(output.data.length);
  const run = () =>
    eachRow(layout, (first, target) => {
      chosen[target] = first + winner(x.data, first, length, inner, beats) * inner;
      output.data[target] = x.data[chosen[target]];
    });
  const pull = () => chosen.forEach((place, target) => (x.grad[place] += output.grad[target]));
  return { outputs: [output], run, pull };
}

function argMax([x], { axis, keepdims }) {
  const layout = axisOf(x.shape, axis);
  const output = makeTensor(reducedShape(x.shape, axis, keepdims), false);
  const run = () =>
    eachRow(layout, (first, target) => {
      const { length, inner } = layout;
      output.data[target] = winner(x.data, first, length, inner, (a, b) => a > b);
    });
  return { outputs: [output], run, pull: null };
}

/** All of a row of numbers in falling order; places are not computed, since nothing reads them. */
function sorted([x, count], { axis }) {
  const layout = axisOf(x.shape, axis);
  const { length, inner } = layout;
  if (count.data[0] !== length) {
    throw new Error(`TopK must take all ${length} entries, got ${count.data[0]}`);
  }
  const output = makeTensor(x.shape, x.grad !== null);
  const places = new Int32Array(x.data.length);
  const order = Array.from({ length });
  const run = () =>
    eachRow({ ...layout }, (first) => {
      for (let k = 0; k < length; k++) order[k] = first + k * inner;
      order.sort((p, q) => x.data[q] - x.data[p]);
      for (let k = 0; k < length; k++) {
        places[first + k * inner] = order[k];
        output.data[first + k * inner] = x.data[order[k]];
      }
    });
  const pull = () => places.forEach((place, target) => (x.grad[place] += output.grad[target]));
  return { outputs: [output, makeTensor([0], false)], run, pull };
}
