/** The matrix product: stored matrices from the left, in sums of products of doubles. */

import { makeTensor } from "./tensors.js";

/** Matrices `(m, k)`, or a stack of them, times `(k, n)`, or as many. */
export function product([matrix, x]) {
  const rank = matrix.shape.length;
  const [m, k] = matrix.shape.slice(rank - 2);
  const n = x.shape[x.shape.length - 1];
  const stack = matrix.shape.slice(0, rank - 2);
  if (matrix.grad !== null || rank !== x.shape.length) {
    throw new Error(`MatMul must have a stored matrix of rank ${x.shape.length}, got ${rank}`);
  }
  const output = makeTensor([...stack, m, n], x.grad !== null);
  const count = output.data.length / (m * n);
  const sides = { m, k, n };
  const run = () => {
    for (let s = 0; s < count; s++) {
      if (n === 1) multiplyVector(sides, s, matrix.data, x.data, output.data);
      else multiplyMatrix(sides, s, matrix.data, x.data, output.data);
    }
  };
  const pull = () => {
    for (let s = 0; s < count; s++) {
      if (n === 1) pullVector(sides, s, matrix.data, output.grad, x.grad);
      else pullMatrix(sides, s, matrix.data, output.grad, x.grad);
    }
  };
  return { outputs: [output], run, pull };
}

/** Four rows at a time, so that four sums grow side by side. */
function multiplyVector({ m, k }, s, w, x, out) {
  const [xs, os, ws] = [s * k, s * m, s * m * k];
  let row = 0;
  for (; row + 4 <= m; row += 4) {
    const [r0, r1, r2, r3] = [0, 1, 2, 3].map((next) => ws + (row + next) * k);
    let [a, b, c, d] = [0, 0, 0, 0];
    for (let i = 0; i < k; i++) {
      const factor = x[xs + i];
      a += w[r0 + i] * factor;
      b += w[r1 + i] * factor;
      c += w[r2 + i] * factor;
      d += w[r3 + i] * factor;
    }
    out[os + row] = a;
    out[os + row + 1] = b;
    out[os + row + 2] = c;
    out[os + row + 3] = d;
  }
  for (; row < m; row++) {
    let sum = 0;
    for (let i = 0; i < k; i++) sum += w[ws + row * k + i] * x[xs + i];
    out[os + row] = sum;
  }
}

function multiplyMatrix({ m, k, n }, s, w, x, out) {
  out.fill(0, s * m * n, (s + 1) * m * n);
  for (let row = 0; row < m; row++) {
    const weights = { data: w, start: (s * m + row) * k, step: 1 };
    addRows(out, (s * m + row) * n, n, weights, x, s * k * n, k);
  }
}

function pullVector({ m, k }, s, w, given, grad) {
  addRows(grad, s * k, k, { data: given, start: s * m, step: 1 }, w, s * m * k, m);
}

function pullMatrix({ m, k, n }, s, w, given, grad) {
  for (let i = 0; i < k; i++) {
    const weights = { data: w, start: s * m * k + i, step: k };
    addRows(grad, (s * k + i) * n, n, weights, given, s * m * n, m);
  }
}

/** Adds `count` rows of `length` numbers, each times its weight, to one row; four at a time. */
function addRows(out, target, length, { data, start, step }, rows, first, count) {
  let row = 0;
  for (; row + 4 <= count; row += 4) {
    const at = start + row * step;
    const [a, b, c, d] = [data[at], data[at + step], data[at + 2 * step], data[at + 3 * step]];
    const r0 = first + row * length;
    const [r1, r2, r3] = [r0 + length, r0 + 2 * length, r0 + 3 * length];
    for (let i = 0; i < length; i++) {
      out[target + i] += a * rows[r0 + i] + b * rows[r1 + i] + c * rows[r2 + i] + d * rows[r3 + i];
    }
  }
  for (; row < count; row++) {
    const weight = data[start + row * step];
    const from = first + row * length;
    for (let i = 0; i < length; i++) out[target + i] += weight * rows[from + i];
  }
}
