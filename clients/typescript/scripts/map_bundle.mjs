/** Write the bundle of the SDK for the map page of the gateway to the file that is given. */

import { build } from "esbuild";

await build({
    entryPoints: ["tools/map_bundle.ts"],
    outfile: process.argv[2],
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    legalComments: "inline",
});
