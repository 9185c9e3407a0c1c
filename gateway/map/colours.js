/** Colours of the canvas and of the base map, from the variables of map.css, for light and dark. */

/** @typedef {"light" | "dark"} Theme */

const STORED = "nearcast-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

/** @returns {Theme} */
export function theme() {
    const chosen = document.documentElement.dataset.theme;
    if (chosen === "light" || chosen === "dark") return chosen;
    return system.matches ? "dark" : "light";
}

/** Keep a theme for this browser. @param {Theme} chosen */
export function chooseTheme(chosen) {
    document.documentElement.dataset.theme = chosen;
    localStorage.setItem(STORED, chosen);
}

/** Call a function when the theme of the system changes. @param {() => void} changed */
export function watchTheme(changed) {
    system.addEventListener("change", changed);
}

/** Return the value of a colour of map.css. @param {string} name */
export function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
