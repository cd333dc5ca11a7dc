/** Operators that move numbers and compute none. */

import { axisOf, isActive, makeTensor, placesOf, reshaped, sizeOf, stridesOf } from "./tensors.js";

export const MOVES = {
  Cast: ([x]) => alias(x, x.shape),
  Identity: ([x]) => alias(x, x.shape),
  Reshape: ([x, shape]) => alias(x, completed(Array.from(shape.data), x.data.length)),
  Squeeze: ([x, axes]) =>
    alias(
      x,
      x.shape.filter((_, axis) => !axes.data.includes(axis)),
    ),
  Unsqueeze: ([x, axes]) => alias(x, unsqueezed(x.shape, axes.data)),
  Transpose: ([x], { perm }) => {
    const strides = stridesOf(x.shape);
    const shape = perm.map((axis) => x.shape[axis]);
    return moved(
      x,
      shape,
      placesOf(
        shape,
        perm.map((axis) => strides[axis]),
      ),
    );
  },
  Gather: gather,
  Split: split,
  Concat: concat,
  Pad: pad,
};

function alias(x, shape) {
  return { outputs: [reshaped(x, shape)], run: null, pull: null };
}

function completed(shape, size) {
  const known = shape.filter((length) => length >= 0).reduce((product, n) => product * n, 1);
  return shape.map((length) => (length < 0 ? size / known : length));
}

function unsqueezed(shape, axes) {
  const longer = [...shape];
  for (const axis of axes) longer.splice(axis, 0, 1);
  return longer;
}

/** The entry at each place of x, in order. */
function moved(x, shape, places) {
  const output = makeTensor(shape, x.grad !== null);
  const run = () => {
    const [from, to] = [x.data, output.data];
    for (let i = 0; i < to.length; i++) to[i] = from[places[i]];
  };
  const pull = () => {
    for (let i = 0; i < places.length; i++) x.grad[places[i]] += output.grad[i];
  };
  return { outputs: [output], run, pull };
}

/** Rows of an axis by their numbers, which may be computed. */
function gather([x, rows], { axis }) {
  const { outer, length, inner } = axisOf(x.shape, axis);
  const shape = [...x.shape.slice(0, axis), ...rows.shape, ...x.shape.slice(axis + 1)];
  const output = makeTensor(shape, x.grad !== null);
  const count = sizeOf(rows.shape);
  const eachRow = (visit) => {
    for (let block = 0; block < outer; block++) {
      for (let row = 0; row < count; row++) {
        visit((block * length + rows.data[row]) * inner, (block * count + row) * inner);
      }
    }
  };
  const run = () =>
    eachRow((from, to) => {
      for (let i = 0; i < inner; i++) output.data[to + i] = x.data[from + i];
    });
  const pull = () =>
    eachRow((from, to) => {
      for (let i = 0; i < inner; i++) x.grad[from + i] += output.grad[to + i];
    });
  return { outputs: [output], run, pull };
}

function split([x, sizes], { axis }) {
  const strides = stridesOf(x.shape);
  let start = 0;
  const parts = Array.from(sizes.data, (size) => {
    const shape = x.shape.map((length, at) => (at === axis ? size : length));
    const from = start * strides[axis];
    start += size;
    return moved(
      x,
      shape,
      placesOf(shape, strides).map((place) => place + from),
    );
  });
  return {
    outputs: parts.flatMap(({ outputs }) => outputs),
    run: () => parts.forEach((part) => part.run()),
    pull: () => parts.forEach((part) => part.pull()),
  };
}

function concat(inputs, { axis }) {
  const lengths = inputs.map(({ shape }) => shape[axis]);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const shape = inputs[0].shape.map((length, at) => (at === axis ? total : length));
  const output = makeTensor(shape, isActive(inputs));
  const strides = stridesOf(shape);
  let start = 0;
  const targets = inputs.map((input, number) => {
    const from = start * strides[axis];
    start += lengths[number];
    return placesOf(input.shape, strides).map((place) => place + from);
  });
  const run = () =>
    inputs.forEach(({ data }, number) => {
      const places = targets[number];
      for (let i = 0; i < data.length; i++) output.data[places[i]] = data[i];
    });
  const pull = () =>
    inputs.forEach(({ grad }, number) => {
      const places = targets[number];
      for (let i = 0; grad && i < grad.length; i++) grad[i] += output.grad[places[i]];
    });
  return { outputs: [output], run, pull };
}

/** Zeros behind the rows of a tensor. */
function pad([x, widths]) {
  const rank = x.shape.length;
  if (widths.data.some((width, side) => width && side !== rank)) {
    throw new Error(`Pad must add rows at the end alone, got ${Array.from(widths.data)}`);
  }
  const [rows, ...rest] = x.shape;
  const output = makeTensor([rows + widths.data[rank], ...rest], x.grad !== null);
  const run = () => output.data.set(x.data);
  const pull = () => {
    for (let i = 0; i < x.data.length; i++) x.grad[i] += output.grad[i];
  };
  return { outputs: [output], run, pull };
}
