// zarrita's elements as bytes.

export const bytesOf = (data) =>
  data.buffer ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(Array.from(data, Number));

// zarrita returns elements in the array's memory order, with strides.
export function cOrder({ data, shape, stride }, width) {
  const source = bytesOf(data);
  const out = Buffer.alloc(source.length);
  const count = source.length / width;
  const index = new Array(shape.length).fill(0);
  for (let to = 0; to < count; to++) {
    const from = index.reduce((sum, at, axis) => sum + at * stride[axis], 0);
    source.copy(out, to * width, from * width, (from + 1) * width);
    for (let axis = shape.length - 1; axis >= 0 && ++index[axis] === shape[axis]; axis--) index[axis] = 0;
  }
  return out;
}
