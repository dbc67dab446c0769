// SPDX-License-Identifier: MIT OR Apache-2.0
// wasi: runs a Wasm program in Node.js and times it: node wasi.mjs PROGRAM.wasm ARGUMENT...
// The time excludes the start of the engine. Prints one line of JSON, as impl/lab.h does, but without the number of operations. The
// last word of the program's output is its answer.
//
// This file implements the few system calls that the programs make, because node:wasi of Node.js 20 crashes in some runs of programs
// whose memory grows.
import fs from "node:fs";

const OK = 0;
const NO_SUCH_CALL = 52; // ENOSYS
const words = process.argv.slice(2).map((word) => Buffer.from(`${word}\0`));
let memory;
let output = "";

class Exit {
	constructor(code) {
		this.code = code;
	}
}

const view = () => new DataView(memory.buffer);

const calls = {
	args_sizes_get(count, size) {
		view().setUint32(count, words.length, true);
		view().setUint32(size, words.reduce((sum, word) => sum + word.length, 0), true);
		return OK;
	},
	args_get(pointers, texts) {
		for (const word of words) {
			view().setUint32(pointers, texts, true);
			new Uint8Array(memory.buffer).set(word, texts);
			pointers += 4;
			texts += word.length;
		}
		return OK;
	},
	fd_fdstat_get(fd, stat) {
		new Uint8Array(memory.buffer).fill(0, stat, stat + 24);
		view().setUint8(stat, 2); // a character device
		return OK;
	},
	fd_write(fd, parts, count, written) {
		let sum = 0;
		for (let i = 0; i < count; i++) {
			const start = view().getUint32(parts + 8 * i, true);
			const length = view().getUint32(parts + 8 * i + 4, true);
			const text = Buffer.from(memory.buffer, start, length).toString();
			if (fd === 1) {
				output += text;
			} else {
				process.stderr.write(text);
			}
			sum += length;
		}
		view().setUint32(written, sum, true);
		return OK;
	},
	proc_exit(code) {
		throw new Exit(code);
	},
};

const module = await WebAssembly.compile(fs.readFileSync(process.argv[2]));
const imports = {};
for (const { module: from, name } of WebAssembly.Module.imports(module)) {
	imports[from] ??= {};
	imports[from][name] = calls[name] ?? (() => NO_SUCH_CALL);
}
const instance = await WebAssembly.instantiate(module, imports);
memory = instance.exports.memory;

const began = process.hrtime.bigint();
const before = process.cpuUsage();
try {
	instance.exports._start();
} catch (thrown) {
	if (!(thrown instanceof Exit)) {
		throw thrown;
	}
	if (thrown.code) {
		process.exit(thrown.code);
	}
}
const used = process.cpuUsage(before);
const wall = Number(process.hrtime.bigint() - began) / 1e9;
const result = output.trim().split(/\s+/).pop();
console.log(JSON.stringify({ cpu: (used.user + used.system) / 1e6, wall, result }));
