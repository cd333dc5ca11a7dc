/** Questions to the worker; of each kind the last one is answered, older answers are dropped. */

export class Asker {
  /** `script` and what it opens, as texts; `failed` is told what goes wrong. */
  constructor(script, failed) {
    const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    this.worker = new Worker(address);
    this.turns = {};
    this.hearers = {};
    this.worker.onerror = ({ message }) => failed(message);
    this.worker.onmessage = ({ data: { kind, turn, value } }) => {
      if (kind === "failed") failed(value);
      else if (turn === this.turns[kind]) this.hearers[kind](value);
    };
  }

  /** `hear` is told each answer, of a search several. */
  ask(kind, question, hear) {
    this.turns[kind] = (this.turns[kind] ?? 0) + 1;
    this.hearers[kind] = hear;
    this.worker.postMessage({ kind, turn: this.turns[kind], ...question });
  }

  /** Takes a question back. */
  drop(kind) {
    this.turns[kind] = (this.turns[kind] ?? 0) + 1;
    this.worker.postMessage({ kind: "stop", what: kind });
  }
}
