/** Labels and leads of logits. */

/** The class with the largest logit, the first of equal ones; `except` is left out. */
export function largest(logits, except = -1) {
  let best = -1;
  for (let k = 0; k < logits.length; k++) {
    if (k !== except && (best < 0 || logits[k] > logits[best])) best = k;
  }
  return best;
}

/** How far a class is ahead of all others; negative where another one leads. */
export function leadOf(logits, label) {
  return logits[label] - logits[largest(logits, label)];
}

/** Whether the network gives another label: on a tie the lower class has it. */
export function isLost(logits, label) {
  return largest(logits) !== label;
}
