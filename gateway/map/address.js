/**
 * The state of the page in the fragment of its address: the view, filters, layers and the chosen device.
 *
 * A fragment is not sent to a server. A token in it is kept for this tab and removed from the address.
 */

/**
 * @typedef {object} Place
 * @property {string} device
 * @property {string} keyword
 * @property {string[]} hidden names of layers that are not drawn
 * @property {[number, number, number] | null} view longitude, latitude and zoom
 * @property {number | null} run time of the recorded run in seconds; null for live
 */

const TOKEN = "nearcast-token";

/** @returns {Place} */
export function readAddress() {
    const fields = new URLSearchParams(location.hash.slice(1));
    const token = fields.get("token");
    if (token !== null) {
        keepToken(token);
        fields.delete("token");
        history.replaceState(null, "", `#${fields}`);
    }
    const view = (fields.get("view") ?? "").split(",").map(Number);
    const run = Number(fields.get("run") ?? NaN);
    return {
        device: fields.get("device") ?? "",
        keyword: fields.get("keyword") ?? "",
        hidden: (fields.get("hide") ?? "").split(",").filter(Boolean),
        view: view.length === 3 && view.every(Number.isFinite) ? [view[0], view[1], view[2]] : null,
        run: Number.isFinite(run) ? run : null,
    };
}

/** @param {Place} place */
export function writeAddress({ device, keyword, hidden, view, run }) {
    const fields = [];
    if (view !== null) fields.push(`view=${view[0].toFixed(5)},${view[1].toFixed(5)},${view[2].toFixed(2)}`);
    if (device) fields.push(`device=${encodeURIComponent(device)}`);
    if (keyword) fields.push(`keyword=${encodeURIComponent(keyword)}`);
    if (hidden.length > 0) fields.push(`hide=${hidden.join(",")}`);
    if (run !== null) fields.push(`run=${Math.round(run)}`);
    history.replaceState(null, "", `#${fields.join("&")}`);
}

export function storedToken() {
    return sessionStorage.getItem(TOKEN) ?? "";
}

/** @param {string} token */
export function keepToken(token) {
    sessionStorage.setItem(TOKEN, token);
}
