// Runs the cases in WebAssembly: `node run.mjs MODULE check|time SEED...`. It prints what `src/main.rs` prints on the host.

import { readFile } from "node:fs/promises";

const [file, mode, ...seeds] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(await readFile(file));
const module = instance.exports;

function text() {
  const bytes = new Uint8Array(
    module.memory.buffer,
    module.wasmcheck_text(),
    module.wasmcheck_text_bytes(),
  );
  return new TextDecoder().decode(bytes);
}

function fail(what) {
  console.error(what);
  process.exit(1);
}

for (const seed of seeds) {
  for (let number = 0; number < module.wasmcheck_cases(); number++) {
    const start = process.hrtime.bigint();
    let hash;
    try {
      hash = module.wasmcheck_run(number, BigInt(seed));
    } catch (error) {
      // The module has stopped; its memory still says why.
      fail(`case ${number}, seed ${seed}: ${error}: ${text()}`);
    }
    const took = process.hrtime.bigint() - start;
    if (hash === 0n) fail(text());
    console.log(mode === "time" ? `${took}\t${text()}` : text());
  }
}
