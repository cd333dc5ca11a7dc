/** The part of the address behind `#`, which people may copy at any time. */

/** Between two changes, in milliseconds: browsers refuse more than about three a second. */
const PAUSE = 350;

export class Address {
  constructor() {
    this.written = location.hash;
    this.last = -Infinity;
    this.waiting = null;
  }

  /** Changes the address, at once or when the pause is over. */
  write(fragment) {
    clearTimeout(this.timer);
    this.waiting = fragment;
    const left = this.last + PAUSE - performance.now();
    if (left <= 0) this.flush();
    else this.timer = setTimeout(() => this.flush(), left);
    document.body.dataset.address = this.waiting === null ? "written" : "waiting";
  }

  flush() {
    if (this.waiting === null) return;
    clearTimeout(this.timer);
    history.replaceState(null, "", this.waiting);
    this.written = location.hash;
    this.waiting = null;
    this.last = performance.now();
    document.body.dataset.address = "written";
  }
}
