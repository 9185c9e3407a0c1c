/**
 * Parse the text of an expression to a tree, or throw an error with the position of the mistake.
 *
 *     any      all (OR all)*
 *     all      negated (AND negated)*
 *     negated  NOT* operand
 *     operand  "(" any ")" | WORD | QUOTED
 *
 * The parser is a recursive descent parser. It takes time linear in the length of the text.
 */

import { invalid } from "./errors.js";
import type { RefusedError } from "./errors.js";
import { BLANK, normalisedKeyword } from "./keywords.js";
import { isPrintable } from "./numbers.js";

export const FIELD = "spec.boolean.expression";
const TEXT_LENGTH_MAX = 4096;
/** Largest number of nested parentheses. */
const NESTING_MAX = 50;
/** Number of characters that an error shows before and after the position. */
const SHOWN = 30;

/**
 * Characters of a keyword without quotes. Curly, angle and wide quotes and wide parentheses are refused:
 * phones insert them by themselves, and as letters they would make an expression that matches nothing.
 */
const WORD = `[^${BLANK.slice(1, -1)}()"\\u201c-\\u201f\\u00ab\\u00bb\\uff02\\uff08\\uff09]+`;
const TOKEN = new RegExp(
    `${BLANK}*(?:(?<word>${WORD})|(?<quoted>"(?:\\\\.|[^"\\\\])*")|(?<open>\\()|(?<close>\\)))`,
    "suy",
);
const BLANKS = new RegExp(`${BLANK}*`, "uy");

type Terminal = "word" | "quoted" | "open" | "close" | "AND" | "OR" | "NOT" | "end";

/** A keyword, an operator or a parenthesis. */
export interface Token {
    readonly terminal: Terminal;
    /** Text of the token in the expression, quotes included. */
    readonly text: string;
    /** Index of the first character. */
    readonly at: number;
}

/** A part of an expression after an odd number of NOTs; `at` is the index of the last one. */
export interface Negated {
    readonly at: number;
    readonly part: Node;
}

/** Two or more parts, joined by AND (`isAll`) or by OR. */
export interface Joined {
    readonly isAll: boolean;
    readonly parts: readonly Node[];
}

/** A token is a keyword. */
export type Node = Token | Negated | Joined;

/** Return the tree of a text. */
export function parsed(text: string): Node {
    const count = [...text].length;
    if (count > TEXT_LENGTH_MAX) {
        throw invalid(FIELD, excerpt(text), `at most ${TEXT_LENGTH_MAX} characters, not ${count}`);
    }
    return new Parser(text).tree();
}

/** Return the normalised keyword of a token. */
export function keywordOf(token: Token, text: string): string {
    const keyword = normalisedKeyword(token.terminal === "word" ? token.text : unquoted(token, text));
    if (keyword === "") throw refused(text, token.at, "expected a keyword in the quotes");
    if (!isPrintable(keyword))
        throw refused(text, token.at, "expected a keyword of printable characters");
    return keyword;
}

/** Return the error for a mistake at an index of a text. The message counts characters from 1. */
export function refused(text: string, at: number, what: string, must = "well-formed"): RefusedError {
    const character = [...text.slice(0, at)].length + 1;
    return invalid(FIELD, excerpt(text, at), `${must}; at character ${character}: ${what}`);
}

/** Return the part of a text around an index. */
export function excerpt(text: string, at = 0): string {
    const begin = Math.max(0, at - SHOWN);
    const end = at + SHOWN;
    return `${begin > 0 ? "…" : ""}${text.slice(begin, end)}${end < text.length ? "…" : ""}`;
}

class Parser {
    readonly #tokens: Iterator<Token, undefined>;
    /** Indexes of the parentheses that are not closed yet. */
    readonly #opened: number[] = [];
    #before: Token | undefined;
    #next: Token;

    constructor(readonly text: string) {
        this.#tokens = tokens(text);
        this.#next = this.#taken();
    }

    tree(): Node {
        const found = this.#any();
        if (this.#next.terminal !== "end") throw this.#unexpectedAfterOperand();
        return found;
    }

    #any(): Node {
        return this.#joined("OR", () => this.#joined("AND", () => this.#negated()));
    }

    #joined(operator: "AND" | "OR", part: () => Node): Node {
        const first = part();
        const parts = [first];
        while (this.#next.terminal === operator) {
            this.#advance();
            parts.push(part());
        }
        return parts.length === 1 ? first : { isAll: operator === "AND", parts };
    }

    #negated(): Node {
        let at = 0;
        let isOdd = false;
        while (this.#next.terminal === "NOT") {
            at = this.#next.at;
            isOdd = !isOdd;
            this.#advance();
        }
        const part = this.#operand();
        return isOdd ? { at, part } : part;
    }

    #operand(): Node {
        const token = this.#next;
        if (token.terminal === "open") return this.#parenthesised();
        if (token.terminal !== "word" && token.terminal !== "quoted") {
            throw refused(this.text, token.at, "expected a keyword, NOT or (");
        }
        this.#advance();
        return token;
    }

    #parenthesised(): Node {
        const { at } = this.#next;
        this.#opened.push(at);
        if (this.#opened.length > NESTING_MAX) {
            throw refused(this.text, at, `expected at most ${NESTING_MAX} nested parentheses`);
        }
        this.#advance();
        const found = this.#any();
        if (this.#next.terminal !== "close") throw this.#unexpectedAfterOperand();
        this.#opened.pop();
        this.#advance();
        return found;
    }

    #advance(): void {
        this.#before = this.#next;
        this.#next = this.#taken();
    }

    #taken(): Token {
        return this.#tokens.next().value ?? { terminal: "end", text: "", at: this.text.length };
    }

    /** Return an error that names the expected tokens and the likely mistake. */
    #unexpectedAfterOperand(): RefusedError {
        const token = this.#next;
        const opened = this.#opened.at(-1);
        let expected = `expected AND, OR or ${opened === undefined ? "the end" : ")"}`;
        if (token.terminal === "end") {
            expected += ` for the ( at character ${[...this.text.slice(0, opened)].length + 1}`;
        } else if (isLowerCaseOperator(this.#before) || isLowerCaseOperator(token)) {
            expected += "; operators are in upper case";
        } else if (token.terminal === "NOT") {
            expected += "; write AND NOT";
        } else if (token.terminal === "word" || token.terminal === "quoted") {
            expected += "; put AND between keywords, or quotes around a keyword with blanks";
        }
        return refused(this.text, token.at, expected);
    }
}

function isLowerCaseOperator(token: Token | undefined): boolean {
    return token?.terminal === "word" && ["AND", "OR", "NOT"].includes(token.text.toUpperCase());
}

function* tokens(text: string): Generator<Token, undefined> {
    let at = 0;
    for (;;) {
        TOKEN.lastIndex = at;
        const groups = TOKEN.exec(text)?.groups;
        if (groups === undefined) break;
        const [name, written] = Object.entries(groups).find(([, one]) => one !== undefined) as [
            Terminal,
            string,
        ];
        at = TOKEN.lastIndex;
        const isOperator = written === "AND" || written === "OR" || written === "NOT";
        yield { terminal: isOperator ? written : name, text: written, at: at - written.length };
    }
    BLANKS.lastIndex = at;
    BLANKS.exec(text);
    at = Math.max(at, BLANKS.lastIndex);
    if (at < text.length) throw unexpectedCharacter(text, at);
    return undefined;
}

function unquoted(token: Token, text: string): string {
    for (const escape of token.text.matchAll(/\\(.)/gsu)) {
        if (escape[1] !== '"' && escape[1] !== "\\") {
            const at = token.at + escape.index;
            throw refused(text, at, "expected a quote or a backslash after the backslash");
        }
    }
    return token.text.slice(1, -1).replace(/\\(.)/gsu, "$1");
}

function unexpectedCharacter(text: string, at: number): RefusedError {
    if (text[at] === '"') return refused(text, at, "expected a closing quote");
    return refused(text, at, 'expected plain quotes (") and parentheses');
}
