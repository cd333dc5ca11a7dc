/** Bytes from their text. */

/**
 * Characters that are decoded at once, a multiple of four: a whole text may be too long for a
 * string.
 */
const PART = 2 ** 20;

export function bytesOf(text) {
  const clean = text.trim();
  const padding = clean.endsWith("==") ? 2 : Number(clean.endsWith("="));
  const bytes = new Uint8Array((clean.length / 4) * 3 - padding);
  for (let start = 0, at = 0; start < clean.length; start += PART) {
    const part = atob(clean.slice(start, start + PART));
    for (let i = 0; i < part.length; i++) bytes[at++] = part.charCodeAt(i);
  }
  return bytes;
}
