// Calls OpenClaw's own forget inside one process and says how long each call took.
//
//     node forget.mjs PACKAGE_DIRECTORY '[{"session": ["ID"], "dryRun": true}, ...]'
//
// The store is found through OPENCLAW_STATE_DIR and OPENCLAW_CONFIG_PATH. The bundle's file names change with every
// build, so the modules are found by what they export.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [packageDirectory, callsAsJson] = process.argv.slice(2);
const dist = path.join(packageDirectory, "dist");

function fileThatExports(name) {
  for (const file of fs.readdirSync(dist).filter((entry) => entry.endsWith(".mjs"))) {
    const lists = fs.readFileSync(path.join(dist, file), "utf8").match(/export \{[^}]*\}/g) ?? [];
    const names = lists.flatMap((list) => list.slice(8, -1).split(",")).map((entry) => entry.trim());
    if (names.includes(name)) return path.join(dist, file);
  }
  throw new Error(`no module in ${dist} exports ${name}`);
}

const load = (file) => import(pathToFileURL(file).href);

async function captured(action) {
  const write = process.stdout.write;
  let text = "";
  process.stdout.write = (chunk) => ((text += chunk), true);
  try {
    await action();
  } finally {
    process.stdout.write = write;
  }
  return text;
}

const command = fileThatExports("runMemoryForget");
const state = fileThatExports("configureMemoryCoreDreamingState");
const begin = performance.now();
const { createPluginStateKeyedStore } = await load(path.join(dist, "plugin-sdk", "plugin-state-store-runtime.js"));
const { configureMemoryCoreDreamingState } = await load(state);
configureMemoryCoreDreamingState((options) => createPluginStateKeyedStore("memory-core", options));
const { runMemoryForget } = await load(command);
const loaded = (performance.now() - begin) / 1000;

const calls = [];
for (const options of JSON.parse(callsAsJson)) {
  const started = performance.now();
  const cpu = process.cpuUsage();
  const printed = await captured(() => runMemoryForget({ agent: "main", json: true, ...options }));
  const used = process.cpuUsage(cpu);
  calls.push({
    wall: (performance.now() - started) / 1000,
    cpu: (used.user + used.system) / 1e6,
    artifacts: JSON.parse(printed).artifacts,
  });
}
console.log(JSON.stringify({ loaded, peakMib: process.resourceUsage().maxRSS / 1024, calls }));
process.exit(0);
