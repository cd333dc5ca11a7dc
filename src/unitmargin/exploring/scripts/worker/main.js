/** The worker: it opens the network, and answers what the page asks of it. */

import { bytesOf } from "../base64.js";
import { closestPoint } from "./closest.js";
import { requireDoubles } from "./environment.js";
import { field } from "./field.js";
import { largest } from "./margins.js";
import { makeProgram } from "./program.js";
import { Schedule } from "./schedule.js";
import { tries } from "./tries.js";

/** Time between two reports of a search, in milliseconds. */
const REPORT = 150;

/** How an answer to each kind of question is computed; the first ones go before the others. */
const JOBS = {
  certify: function* (program, { x }) {
    const started = performance.now();
    const claims = program.certify(x);
    return { ...claims, milliseconds: performance.now() - started };
  },
  label: function* (program, { x }) {
    return { label: largest(program.logits(x)) };
  },
  closest: (program, { x }) => closestPoint(program, x),
  field: (program, { area, side }) => field(program, area, side),
  tries: reportedTries,
};

let program = null;

const schedule = new Schedule(Object.keys(JOBS), (kind, turn, value) =>
  postMessage({ kind, turn, value }),
);

/** A search that reports, and ends when it has tried enough points or taken long enough. */
function* reportedTries(program, { x, ball, wanted, seconds }, turn) {
  const told = ({ random, gradient, found }, done) => ({ random, gradient, found, done });
  let last = null;
  const end = performance.now() + 1000 * seconds;
  let reported = performance.now();
  for (last of tries(program, x, ball, wanted)) {
    yield;
    if (performance.now() > end) break;
    if (performance.now() - reported < REPORT) continue;
    reported = performance.now();
    postMessage({ kind: "tries", turn, value: told(last, false) });
  }
  return told(last, true);
}

function open({ description, numbers }) {
  requireDoubles();
  program = makeProgram(description, bytesOf(numbers).buffer);
}

onmessage = ({ data: { kind, turn, ...question } }) => {
  try {
    if (kind === "open") open(question);
    else if (kind === "stop") schedule.stop(question.what);
    else schedule.start(kind, turn, JOBS[kind](program, question, turn));
    if (kind === "open") postMessage({ kind, turn, value: true });
  } catch (error) {
    postMessage({ kind: "failed", turn, value: error.message });
  }
};
