/** The normal form of keywords: Unicode NFKC, case folded and trimmed. */

/** What the server trims, as a class of a regular expression: no byte order mark. */
export const BLANK =
    "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const OUTER_BLANKS = new RegExp(`^${BLANK}+|${BLANK}+$`, "gu");

/** Cherokee folds to its upper case. */
const CHEROKEE = /[\u13a0-\u13fd\uab70-\uabbf]/u;

/** Return a keyword in its normal form. Folding can denormalise, hence the second pass. */
export function normalisedKeyword(keyword: string): string {
    const folded = [...keyword.normalize("NFKC")].map(folding).join("");
    return folded.normalize("NFKC").replace(OUTER_BLANKS, "");
}

/** Fold the case of one character. A character alone has no final sigma. */
function folding(character: string): string {
    if (character === "ı") return character;
    if (character === "ẞ") return "ss";
    if (CHEROKEE.test(character)) return character.toUpperCase();
    return [...character.toUpperCase()].map((one) => one.toLowerCase()).join("");
}

/** Order texts by their code points, as servers do. */
export function byCodePoint(one: string, other: string): number {
    const left = [...one];
    const right = [...other];
    for (let i = 0; i < Math.min(left.length, right.length); i += 1) {
        const difference = (left[i]?.codePointAt(0) ?? 0) - (right[i]?.codePointAt(0) ?? 0);
        if (difference !== 0) return difference;
    }
    return left.length - right.length;
}
