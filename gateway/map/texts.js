/** Numbers as people read them. */

const whole = new Intl.NumberFormat("en");
const one = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** @param {number} value */
export function count(value) {
    return whole.format(Math.round(value));
}

/** @param {number} value @param {string} noun @param {string} nouns */
export function plural(value, noun, nouns = `${noun}s`) {
    return `${count(value)} ${value === 1 ? noun : nouns}`;
}

/** @param {number} metres */
export function distance(metres) {
    if (!Number.isFinite(metres)) return "unlimited";
    return metres >= 10_000 ? `${one.format(metres / 1000)} km` : `${count(metres)} m`;
}

/** @param {number} ms */
export function duration(ms) {
    const seconds = Math.max(0, Math.floor(ms / 1000));
    if (seconds < 60) return `${seconds} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** @param {number} ms */
export function clock(ms) {
    const seconds = Math.floor(ms / 1000);
    return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** @param {number} part */
export function percent(part) {
    const value = part * 100;
    return `${value > 99 && value < 100 ? Math.min(99.9, Number(value.toFixed(1))) : Math.round(value)} %`;
}

/** @param {number} ms */
export function milliseconds(ms) {
    return ms < 10 ? `${one.format(ms)} ms` : `${count(ms)} ms`;
}
