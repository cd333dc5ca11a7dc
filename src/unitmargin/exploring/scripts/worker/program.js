/** A network as steps on tensors that were made once: nothing is allocated by an evaluation. */

import { ENTRYWISE, where } from "./entrywise.js";
import { MOVES } from "./moves.js";
import { product } from "./products.js";
import { REDUCTIONS } from "./reductions.js";
import { makeTensor } from "./tensors.js";

const OPERATORS = { ...ENTRYWISE, ...MOVES, ...REDUCTIONS, MatMul: product, Where: where };

const KINDS = { f4: Float32Array, f8: Float64Array, i4: Int32Array };

/**
 * The program that a page describes: `nodes` as `[operator, inputs, outputs, attributes]`, the
 * place of each `stored` tensor in the buffer as `[kind, shape, offset, length]`, and names of the
 * claims.
 */
export function makeProgram({ inShape, nodes, stored, claims }, buffer) {
  const input = makeTensor([1, ...inShape], true);
  const tensors = new Map([["x", input]]);
  for (const [name, [kind, shape, offset, length]] of Object.entries(stored)) {
    tensors.set(name, { shape, data: new KINDS[kind](buffer, offset, length), grad: null });
  }
  const steps = nodes.map((node) => makeStep(tensors, node));
  const outputs = Object.entries(claims).map(([name, inner]) => [name, tensors.get(inner)]);
  const needed = neededFor(claims.logits, nodes);
  const moving = (step) => step.run !== null;
  return new Program(
    input,
    Object.fromEntries(outputs),
    steps.filter(moving),
    steps.filter((step, number) => needed.has(nodes[number]) && moving(step)),
  );
}

function makeStep(tensors, [operator, inputs, outputs, attributes]) {
  const make = OPERATORS[operator];
  if (!make) throw new Error(`a node must be one of the known operators, got ${operator}`);
  const step = make(
    inputs.map((name) => tensors.get(name)),
    attributes,
  );
  outputs.forEach((name, number) => tensors.set(name, step.outputs[number]));
  return step;
}

/** The nodes that a value depends on. */
function neededFor(name, nodes) {
  const names = new Set([name]);
  const needed = new Set();
  for (const node of nodes.toReversed()) {
    const [, inputs, outputs] = node;
    if (!outputs.some((output) => names.has(output))) continue;
    needed.add(node);
    inputs.forEach((input) => names.add(input));
  }
  return needed;
}

class Program {
  constructor(input, outputs, steps, stepsOfLogits) {
    this.input = input;
    this.outputs = outputs;
    this.steps = steps;
    this.stepsOfLogits = stepsOfLogits;
    this.stepsBack = stepsOfLogits.filter(({ outputs: [first] }) => first.grad).reverse();
    const tensors = this.stepsBack.flatMap((step) => step.outputs);
    this.grads = new Set([input, ...tensors].map(({ grad }) => grad).filter(Boolean));
  }

  /** What is claimed of an input: equation (14) of docs/soundness.md. */
  certify(x) {
    this.input.data.set(x);
    for (const step of this.steps) step.run();
    const [label, runnerUp, margin, radius] = ["label", "runner_up", "margin", "radius"].map(
      (name) => this.outputs[name].data[0],
    );
    return { label, runnerUp, margin, radius, logits: Float64Array.from(this.outputs.logits.data) };
  }

  /** Logits of an input, in memory that the next evaluation writes. */
  logits(x) {
    this.input.data.set(x);
    for (const step of this.stepsOfLogits) step.run();
    return this.outputs.logits.data;
  }

  /** The gradient of logit `first` minus logit `second` where the network was evaluated last. */
  gradient(first, second) {
    for (const grad of this.grads) grad.fill(0);
    this.outputs.logits.grad[first] = 1;
    this.outputs.logits.grad[second] = -1;
    for (const step of this.stepsBack) step.pull();
    return Float64Array.from(this.input.grad);
  }
}
