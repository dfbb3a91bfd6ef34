// Runs OpenClaw's own forget in this process and prints how long each call took, in milliseconds.
// node driver.mjs PACKAGE_DIR '[{"session": ["ID"], "dryRun": true}, …]'
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [packageDir, requests] = process.argv.slice(2);
const dist = path.join(packageDir, "dist");
const load = (name) => import(pathToFileURL(path.join(dist, name)).href);
const bundled = (pattern, word) => load(fs.readdirSync(dist).find((name) => pattern.test(name)
  && fs.readFileSync(path.join(dist, name), "utf8").includes(word)));
const { runMemoryForget } = await bundled(/^cli\.runtime-.*\.m?js$/, "runMemoryForget");
const { createPluginStateKeyedStore } = await load("plugin-sdk/plugin-state-store-runtime.js");
const state = await bundled(/^dreaming-state-.*\.m?js$/, "configure");
const configure = Object.values(state).find((value) => /^configure/.test(value?.name ?? ""));
configure((options) => createPluginStateKeyedStore("memory-core", options));
const print = process.stdout.write.bind(process.stdout);
const took = [];
for (const request of JSON.parse(requests)) {
  process.stdout.write = () => true;
  const begin = performance.now();
  await runMemoryForget({ agent: "main", json: true, ...request });
  took.push(performance.now() - begin);
  process.stdout.write = print;
}
print(JSON.stringify(took) + "\n");
process.exit(0);
