// Runs the worker's script as a browser does, and asks it what stdin says: one JSON object a line,
// `{open, questions}`, answered by one line of its answers. Numbers are texts, which NaN has too.
const vm = require("node:vm");
const readline = require("node:readline");
const { readFileSync } = require("node:fs");

const script = new vm.Script(readFileSync(process.argv[2], "utf8"));

/** Answers of a fresh worker, each when the one before has come. */
async function answers({ open, questions }) {
  let told = null;
  const scope = { performance, MessageChannel, atob, postMessage: (data) => told(data) };
  vm.createContext(scope);
  script.runInContext(scope);
  const ask = (data) =>
    new Promise((resolve) => {
      told = (answer) => (answer.value?.done === false ? null : resolve(answer));
      scope.onmessage({ data });
    });
  const found = [await ask({ kind: "open", ...open })];
  for (const question of questions) {
    const x = question.x && Float64Array.from(question.x, Number);
    if (question.kind === "gradient")
      found.push({ kind: "gradient", value: gradient(scope, open, x, question) });
    else found.push(await ask({ ...question, x }));
  }
  return found;
}

/** Of the difference of two logits, by a program of its own. */
function gradient(scope, { description, numbers }, x, { first, second }) {
  const modules = vm.runInContext("modules", scope);
  const { buffer } = modules["base64.js"].bytesOf(numbers);
  const program = modules["worker/program.js"].makeProgram(description, buffer);
  program.logits(x);
  return program.gradient(first, second);
}

const plain = (key, value) => {
  if (ArrayBuffer.isView(value)) return Array.from(value, String);
  return typeof value === "number" ? String(value) : value;
};

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await answers(JSON.parse(line)), plain));
  }
  process.exit(0);
})();
