/** The theme, light or dark, and the colours of map.css for the canvas and the base map. */

/** @typedef {"light" | "dark"} Theme */

const STORED = "nearcast-theme";

/** @returns {Theme} */
export function theme() {
    return document.documentElement.dataset.theme === "dark" ? "dark" : "light";
}

/** Keep a theme for this browser. @param {Theme} chosen */
export function chooseTheme(chosen) {
    localStorage.setItem(STORED, chosen);
    document.documentElement.dataset.theme = chosen;
}

/** Follow the system, unless the user has chosen; call a function afterwards. @param {() => void} changed */
export function followSystem(changed) {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ({ matches }) => {
        if (localStorage.getItem(STORED) !== null) return;
        document.documentElement.dataset.theme = matches ? "dark" : "light";
        changed();
    });
}

/** Return the value of a colour of map.css. @param {string} name */
export function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
