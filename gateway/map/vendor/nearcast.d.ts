/** The types of nearcast.js, for the type checker: see clients/typescript/tools/map_bundle.ts. */

export * from "../../../clients/typescript/tools/map_bundle.js";
