/** What a page is about: names, shapes and test samples, as the file holds them. */

import { bytesOf } from "../base64.js";

export function readSubject(find) {
  const subject = JSON.parse(find("subject").textContent);
  const { buffer } = bytesOf(find("inputs").textContent);
  subject.inputs = new Float32Array(buffer);
  subject.size = subject.inShape.reduce((product, length) => product * length, 1);
  return subject;
}
