/** Measure what an app downloads: the SDK and its dependency in one file, minified and compressed. */

import { brotliCompressSync, gzipSync } from "node:zlib";
import { build } from "esbuild";

/** Of the core, which has no I/O, compressed by gzip. */
const BYTES_MAX = 40_000;

async function measured(entryPoint) {
    const { outputFiles } = await build({
        entryPoints: [entryPoint],
        bundle: true,
        minify: true,
        write: false,
        format: "esm",
        platform: "browser",
        target: "es2022",
    });
    const [{ contents }] = outputFiles;
    const gzip = gzipSync(contents, { level: 9 }).length;
    const brotli = brotliCompressSync(contents).length;
    console.log(`${entryPoint}: minified ${contents.length}, gzip ${gzip}, brotli ${brotli}`);
    return gzip;
}

const core = await measured("src/core.ts");
await measured("src/index.ts");
if (core > BYTES_MAX) {
    console.error(`the core has more than ${BYTES_MAX} bytes`);
    process.exitCode = 1;
}
