/** What the map page uses of MapLibre, for the type checker. */

export function setWorkerUrl(url: string): void;
export const Map: new (options: object) => any;
