/**
 * Whether this browser finds what `certify` found in Python for the test samples people look at.
 */

export class Agreement {
  constructor(subject, element, failed) {
    Object.assign(this, { subject, element, failed, seen: new Set() });
  }

  /** Compares the claims of an unchanged test sample. */
  compare(sample, { label, radius }) {
    const { indices, predicted, radii, apart } = this.subject;
    const row = indices.indexOf(sample);
    const agrees = Math.abs(radius - radii[row]) <= apart[row];
    if ((label !== predicted[row] && radii[row] > 0) || !agrees) {
      this.failed(
        `This browser finds another radius for test sample ${sample} than Python did: do not rely on it.`,
      );
      return;
    }
    this.seen.add(sample);
    this.element.textContent = `Checked: answers and radii of ${this.seen.size} test samples that were shown here are those of unitmargin certify, to 1e-9 and their slack.`;
  }
}
