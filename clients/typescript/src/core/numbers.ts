/** Validation of numbers and texts that an app gives. */

import { invalid } from "./errors.js";

/** Validate a finite number and return it; `limit` describes the valid numbers in the error. */
export function finite(value: number, field: string, limit = "a finite number"): number {
    if (typeof value !== "number" || !Number.isFinite(value)) throw invalid(field, value, limit);
    return value;
}

/** Validate a distance in metres, or a duration, that an app has set, and return it. */
export function notNegative(value: number, field: string): number {
    if (finite(value, field) < 0) throw invalid(field, value, "a finite number, at least 0");
    return value;
}

/** Validate a whole number against its limits, and return it. */
export function whole(value: number, field: string, least: number, most: number, limit: string): number {
    if (!Number.isSafeInteger(value) || value < least || value > most) throw invalid(field, value, limit);
    return value;
}

/** Default of the server's limit on the length of names. */
export const NAME_LENGTH_MAX = 128;

/**
 * Controls, blanks but for the space, marks of formatting and direction, surrogates, private characters.
 * The server has the complete table of Unicode; not all engines have classes of it in regular
 * expressions.
 */
const UNPRINTABLE = new RegExp(
    "[\\x00-\\x1f\\x7f-\\xa0\\xad\\u061c\\u1680\\u180e\\u2000-\\u200f\\u2028-\\u202f\\u205f-\\u206f" +
        "\\u3000\\ud800-\\uf8ff\\ufeff\\ufff0-\\ufffb\\ufffe\\uffff\\u{e0000}-\\u{10ffff}]",
    "u",
);

/** Return whether a text has printable characters only. */
export function isPrintable(text: string): boolean {
    return !UNPRINTABLE.test(text);
}

/** Validate a name and return it. It must have printable characters only, for people to read. */
export function checkedName(
    name: string,
    field: string,
    { lengthMax = NAME_LENGTH_MAX, optional = false }: { lengthMax?: number; optional?: boolean } = {},
): string {
    const limit = `a text of ${optional ? 0 : 1} to ${lengthMax} printable characters`;
    const isText = typeof name === "string" && [...name].length <= lengthMax && (name !== "" || optional);
    if (!isText || !isPrintable(name)) throw invalid(field, name, limit);
    return name;
}
