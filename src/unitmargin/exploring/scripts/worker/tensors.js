/**
 * Tensors: numbers in a row, the shape they have, and, where the input reaches them, a gradient.
 */

export function sizeOf(shape) {
  return shape.reduce((size, length) => size * length, 1);
}

export function makeTensor(shape, active) {
  const size = sizeOf(shape);
  return { shape, data: new Float64Array(size), grad: active ? new Float64Array(size) : null };
}

/** The same numbers in another shape. */
export function reshaped(tensor, shape) {
  return { shape, data: tensor.data, grad: tensor.grad };
}

export function isActive(tensors) {
  return tensors.some((tensor) => tensor.grad !== null);
}

/** An axis of a tensor, as `outer` blocks of `length` rows of `inner` numbers. */
export function axisOf(shape, axis) {
  return {
    outer: sizeOf(shape.slice(0, axis)),
    length: shape[axis],
    inner: sizeOf(shape.slice(axis + 1)),
  };
}

/** How far apart neighbours along each axis lie. */
export function stridesOf(shape) {
  return shape.map((_, axis) => sizeOf(shape.slice(axis + 1)));
}

/** Of each entry of `shape`, in order: the sum of its coordinates times `strides`. */
export function placesOf(shape, strides) {
  const places = new Int32Array(sizeOf(shape));
  const at = shape.map(() => 0);
  for (let entry = 0, place = 0; entry < places.length; entry++) {
    places[entry] = place;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      place += strides[axis];
      if (++at[axis] < shape[axis]) break;
      place -= strides[axis] * shape[axis];
      at[axis] = 0;
    }
  }
  return places;
}
