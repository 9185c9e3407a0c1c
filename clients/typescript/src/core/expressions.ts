/** Convert expressions of boolean subscriptions (texts, keywords or clauses) to clauses. */

import { invalid } from "./errors.js";
import type { RefusedError } from "./errors.js";
import { FIELD, excerpt, keywordOf, parsed, refused } from "./grammar.js";
import type { Node } from "./grammar.js";
import { normalisedKeyword } from "./keywords.js";
import { NormalForm, TooManyClausesError } from "./normal_form.js";
import type { Clause, Clauses } from "./normal_form.js";

/** Default of the server's limit on clauses. */
const CLAUSES_MAX = 64;

const EXPECTED = "a text, keywords or clauses";

/**
 * What an object must match: a text with AND, OR, NOT, parentheses and quotes; or keywords, all of which
 * an object must have; or clauses, one of which an object must match.
 */
export type Expression = string | readonly string[] | readonly Clause[];

/** Return the clauses of an expression: sorted, with normalised keywords, none of them redundant. */
export function clausesOf(expression: Expression): Required<Clause>[] {
    const form = new NormalForm();
    const text = typeof expression === "string" ? expression : "";
    const notAt = new Map<string, number>();
    const found = bounded(expression, () =>
        typeof expression === "string"
            ? clausesOfNode(parsed(text), text, form, notAt)
            : clausesGiven(expression, form),
    );
    if (found.size > CLAUSES_MAX) throw tooMany(expression);
    if (found.size === 0) {
        const limit = "an expression that can match: each alternative requires a keyword and excludes it";
        throw invalid(FIELD, text ? excerpt(text) : expression, limit);
    }
    const clauses = form.clauses(found);
    const unrequired = clauses.find((clause) => clause.required.length === 0);
    if (unrequired !== undefined) throw onlyExcluded(text, unrequired, notAt);
    return clauses;
}

function bounded(expression: Expression, work: () => Clauses): Clauses {
    try {
        return work();
    } catch (error) {
        throw error instanceof TooManyClausesError ? tooMany(expression) : error;
    }
}

/** Return the clauses of a node, or of its negation if `not` is the index of a NOT. */
function clausesOfNode(
    node: Node,
    text: string,
    form: NormalForm,
    notAt: Map<string, number>,
    not?: number,
): Clauses {
    if ("terminal" in node) {
        const keyword = keywordOf(node, text);
        if (not !== undefined && !notAt.has(keyword)) notAt.set(keyword, not);
        return form.literal(keyword, not !== undefined);
    }
    if ("part" in node) {
        return clausesOfNode(node.part, text, form, notAt, not === undefined ? node.at : undefined);
    }
    const parts = node.parts.map((part) => clausesOfNode(part, text, form, notAt, not));
    return node.isAll === (not === undefined) ? form.allOf(parts) : form.anyOf(parts);
}

/** Convert keywords or clauses to the normal form. */
function clausesGiven(expression: readonly string[] | readonly Clause[], form: NormalForm): Clauses {
    if (!Array.isArray(expression)) throw invalid(FIELD, expression, EXPECTED);
    const given: readonly (string | Clause)[] = expression;
    if (given.length === 0) throw invalid(FIELD, expression, `${EXPECTED}; it is empty`);
    const keywords = given.filter((one) => typeof one === "string");
    if (keywords.length === given.length) return clauseGiven({ required: keywords }, form);
    if (keywords.length > 0) throw invalid(FIELD, expression, EXPECTED);
    return form.anyOf(given.map((one) => clauseGiven(one as Clause, form)));
}

function clauseGiven(clause: Clause, form: NormalForm): Clauses {
    const literals = (keywords: readonly string[], isExcluded: boolean) => {
        if (!Array.isArray(keywords) || !keywords.every((one) => typeof one === "string")) {
            throw invalid(FIELD, keywords, EXPECTED);
        }
        return keywords.map((keyword) => form.literal(normalisedKeyword(keyword), isExcluded));
    };
    const parts = [...literals(clause?.required, false), ...literals(clause?.excluded ?? [], true)];
    if (parts.length === 0) throw invalid(FIELD, clause, "clauses with keywords");
    return form.allOf(parts);
}

function tooMany(expression: Expression): RefusedError {
    if (typeof expression === "string") {
        const how = "written with OR outside and AND inside, it has too many clauses";
        return invalid(FIELD, excerpt(expression), `at most ${CLAUSES_MAX} clauses; ${how}`);
    }
    return invalid(FIELD, `${expression.length} clauses`, `at most ${CLAUSES_MAX} clauses`);
}

/** Return the error for a clause without a required keyword. */
function onlyExcluded(text: string, clause: Required<Clause>, notAt: Map<string, number>): RefusedError {
    const must = "an expression that requires a keyword in each alternative";
    const why = "NOT only filters what is found by another keyword, joined to it by AND";
    if (!text) return invalid(FIELD, clause, `${must}: ${why}`);
    return refused(text, Math.min(...clause.excluded.map((one) => notAt.get(one) ?? 0)), why, must);
}
