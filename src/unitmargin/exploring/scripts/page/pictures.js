/** Inputs as pictures: grey or coloured, the domain from black to white. */

/** Draws an image `(channels, height, width)` on a canvas of as many pixels; others are clipped. */
export function paint(canvas, image, { inShape, low, high }) {
  const [channels, height, width] = inShape;
  const pixels = height * width;
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
    canvas.style.aspectRatio = `${width} / ${height}`;
  }
  const context = canvas.getContext("2d");
  const picture = context.createImageData(width, height);
  for (let i = 0; i < pixels; i++) {
    for (let colour = 0; colour < 3; colour++) {
      const value = image[(channels === 3 ? colour : 0) * pixels + i];
      picture.data[4 * i + colour] = Math.round((255 * (value - low)) / (high - low));
    }
    picture.data[4 * i + 3] = 255;
  }
  context.putImageData(picture, 0, 0);
}

/**
 * Factor 1, 2, 5, 10, ... that makes a change fill at most half of the domain on either side of
 * grey.
 */
export function amplification(change, { low, high }) {
  const largest = change.reduce((most, entry) => Math.max(most, Math.abs(entry)), 0);
  if (!(largest > 0)) return 1;
  const room = (high - low) / 2 / largest;
  const decade = 10 ** Math.max(Math.floor(Math.log10(room)), 0);
  return Math.max(
    ...[1, 2, 5]
      .filter((factor) => factor === 1 || factor * decade <= room)
      .map((factor) => factor * decade),
  );
}

/** Draws an amplified change around mid grey, and says by how much. */
export function paintChange(canvas, change, subject) {
  const factor = amplification(change, subject);
  const grey = (subject.low + subject.high) / 2;
  paint(
    canvas,
    change.map((entry) => grey + factor * entry),
    subject,
  );
  return factor;
}
