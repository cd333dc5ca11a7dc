/**
 * Whether this browser finds what `certify` found in Python for the test samples people look at.
 */

const APART = 1e-9;

export class Agreement {
  constructor(subject, element, failed) {
    Object.assign(this, { subject, element, failed, seen: new Set() });
  }

  /** Compares the claims of an unchanged test sample. */
  compare(sample, { label, radius }) {
    const { indices, predicted, radii } = this.subject;
    const row = indices.indexOf(sample);
    const apart = Math.abs(radius - radii[row]) / Math.max(radii[row], 1);
    if ((label !== predicted[row] && radii[row] > 0) || !(apart <= APART)) {
      this.failed(
        `This browser finds another radius for test sample ${sample} than Python did: do not rely on it.`,
      );
      return;
    }
    this.seen.add(sample);
    this.element.textContent = `Checked: answers and radii of ${this.seen.size} test samples that were shown here are those of unitmargin certify, to ${APART}.`;
  }
}
