#!/usr/bin/env node
// Labels and radii of raw inputs, by a network that was exported to ONNX; see ../README.md.
//
//   node certify.mjs MODEL.onnx INPUTS.f32 [--reject-below R]

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import ort from "onnxruntime-node";

const FORMAT = "unitmargin-onnx-1";
const BATCH = 128; // inputs evaluated at once: layers take no more memory for more
const METADATA = 14; // number of the field `metadata_props` of an ONNX file

function parse(args) {
  const { positionals, values } = parseArgs({
    args,
    allowPositionals: true,
    options: { "reject-below": { type: "string", default: "0" } },
  });
  const text = values["reject-below"];
  const rejectBelow = text.trim() === "" ? NaN : Number(text);
  if (!(rejectBelow >= 0 && rejectBelow < Infinity))
    throw new Error(`--reject-below must be a finite number >= 0, got "${text}"`);
  if (positionals.length !== 2)
    throw new Error("usage: certify.mjs MODEL.onnx INPUTS.f32 [--reject-below R]");
  return { model: positionals[0], inputs: positionals[1], rejectBelow };
}

// The fields of a message as protocol buffers encode it: pairs of a number and the bytes, of those
// fields that hold bytes.
function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * scale;
      if (!(byte >= 128)) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const kind = tag & 7;
    if (kind === 0) varint();
    else if (kind === 1) at += 8;
    else if (kind === 5) at += 4;
    else {
      const length = varint();
      yield [tag >>> 3, bytes.subarray(at, at + length)];
      at += length;
    }
  }
}

// What a file states of its network. onnxruntime-node does not hand it out, so it is read from the
// bytes, after onnxruntime has found that they are an ONNX file.
function metadataOf(bytes) {
  const entries = [...fields(bytes)].filter(([number]) => number === METADATA);
  return Object.fromEntries(
    entries.map(([, entry]) => {
      const { 1: key, 2: value } = Object.fromEntries(fields(entry));
      return [String(key), String(value)];
    }),
  );
}

async function load(file, bytes) {
  try {
    return await ort.InferenceSession.create(bytes, { logSeverityLevel: 3 });
  } catch (error) {
    throw new Error(`${file} must be an ONNX file, but ${error.message}`);
  }
}

async function open(file) {
  const bytes = readFileSync(file);
  const session = await load(file, bytes);
  const stated = metadataOf(bytes);
  if (stated.format !== FORMAT)
    throw new Error(`${file} must be of the format ${FORMAT}, got "${stated.format ?? ""}"`);
  if (session.inputMetadata[0].type !== "float32")
    throw new Error(`${file} must take inputs of float32; export it with inputs="float32"`);
  const [low, high] = JSON.parse(stated.domain) ?? [-Infinity, Infinity];
  return {
    session,
    classes: JSON.parse(stated.classes),
    shape: JSON.parse(stated.in_shape),
    low: Math.fround(low), // whoever rounds inputs of the domain to float32 stays inside
    high: Math.fround(high),
  };
}

// Little-endian float32 numbers, as x86 and ARM have them in memory.
function readInputs(file, size) {
  const bytes = readFileSync(file);
  if (bytes.length % (4 * size) !== 0)
    throw new Error(
      `${file} must hold inputs of ${size} float32 numbers, got ${bytes.length} bytes`,
    );
  return new Float32Array(new Uint8Array(bytes).buffer);
}

// Why an input has no label, or "certified": a label means that radius > rejectBelow.
function reasonOf(x, radius, { low, high }, rejectBelow) {
  if (!x.every(Number.isFinite)) return "not_finite";
  if (!x.every((entry) => entry >= low && entry <= high)) return "outside_domain";
  if (!(radius > 0)) return "no_claim";
  return radius > rejectBelow ? "certified" : "below_threshold";
}

async function certify({ model, inputs: file, rejectBelow }) {
  const network = await open(model);
  const size = network.shape.reduce((product, length) => product * length, 1);
  const inputs = readInputs(file, size);
  for (let first = 0; first < inputs.length; first += BATCH * size) {
    const batch = inputs.subarray(first, first + BATCH * size);
    const count = batch.length / size;
    const x = new ort.Tensor("float32", batch, [count, ...network.shape]);
    const claims = await network.session.run({ x }, ["label", "runner_up", "radius"]);
    for (let i = 0; i < count; i++) {
      const radius = claims.radius.data[i];
      const input = batch.subarray(i * size, (i + 1) * size);
      const reason = reasonOf(input, radius, network, rejectBelow);
      const label = reason === "certified" ? Number(claims.label.data[i]) : null;
      const second = Number(claims.runner_up.data[i]);
      const answer = {
        label,
        name: label === null ? null : network.classes[label],
        radius,
        runner_up: second < 0 ? null : second,
        reason,
      };
      process.stdout.write(JSON.stringify(answer) + "\n");
    }
  }
}

function fail(error) {
  console.error(`certify: ${error.message.replace(/\s+/g, " ")}`);
  process.exit(2);
}

process.stdout.on("error", fail);
try {
  await certify(parse(process.argv.slice(2)));
} catch (error) {
  fail(error);
}
