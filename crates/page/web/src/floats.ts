/** Floating-point numbers in their order. */

const numbers = new Float64Array(1);
const bits = new BigInt64Array(numbers.buffer);
const MAX = 2n ** 63n - 1n;

/** An integer that orders numbers as they are ordered: neighbours differ by one. */
export function order(value: number): bigint {
  numbers[0] = value;
  return bits[0]! < 0n ? bits[0]! ^ MAX : bits[0]!;
}

/** The number of an integer of `order`. */
export function ordered(key: bigint): number {
  bits[0] = key < 0n ? key ^ MAX : key;
  return numbers[0]!;
}

/** The greatest number that is not above an integer. */
export function floorOf(integer: bigint): number {
  const near = Number(integer);
  return BigInt(near) > integer ? ordered(order(near) - 1n) : near;
}
