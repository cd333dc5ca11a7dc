/**
 * Jobs that take turns: a new one of a kind replaces the old one, and kinds go before others by
 * rank.
 */

/** Time after which messages are looked at, in milliseconds. */
const SLICE = 12;

export class Schedule {
  /** `kinds` by rank; `answer(kind, turn, value)` is told what each job returns. */
  constructor(kinds, answer) {
    this.kinds = kinds;
    this.answer = answer;
    this.jobs = new Map();
    this.running = false;
    this.channel = new MessageChannel();
    this.channel.port1.onmessage = () => this.run();
  }

  /** A generator whose return value is the answer; an `undefined` one is none. */
  start(kind, turn, steps) {
    this.jobs.set(kind, { turn, steps });
    if (!this.running) this.later();
  }

  stop(kind) {
    this.jobs.delete(kind);
  }

  later() {
    this.running = true;
    this.channel.port2.postMessage(null);
  }

  run() {
    const end = performance.now() + SLICE;
    this.running = false;
    do {
      const kind = this.kinds.find((name) => this.jobs.has(name));
      if (!kind) return;
      const { turn, steps } = this.jobs.get(kind);
      const { done, value } = steps.next();
      if (done) this.jobs.delete(kind);
      if (done && value !== undefined) this.answer(kind, turn, value);
    } while (performance.now() < end);
    this.later();
  }
}
