// node componentize.mjs SOURCE WIT WORLD OUT : a module of JavaScript + a WIT world -> a component without WASI.
// The gateway grants no WASI, and a module that imports it does not load. What needs it traps: console, timers, Date,
// Math.random, fetch.
import { componentize } from '@bytecodealliance/componentize-js';
import { writeFileSync } from 'node:fs';

const [sourcePath, witPath, worldName, out] = process.argv.slice(2);
const disableFeatures = ['stdio', 'random', 'clocks', 'http', 'fetch-event'];
const { component } = await componentize({ sourcePath, witPath, worldName, disableFeatures });
writeFileSync(out, component);
