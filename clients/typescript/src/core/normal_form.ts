/**
 * Disjunctive normal form. A clause is a BigInt here, a set of bits: bit 2i requires keyword i, and bit
 * 2i + 1 excludes it. No clause contradicts itself, and none implies another.
 */

import { byCodePoint } from "./keywords.js";

/** Clauses of an intermediate disjunction. */
const INTERMEDIATE_MAX = 4096;
/** Unions and comparisons of two clauses for one expression. */
const STEPS_MAX = 1_000_000;

/** One alternative of a boolean expression. */
export interface Clause {
    /** Keywords that an object must have, at least one. */
    readonly required: readonly string[];
    /** Keywords that an object must not have. */
    readonly excluded?: readonly string[];
}

export type Clauses = ReadonlySet<bigint>;

/** The normal form of an expression exceeds the bounds. */
export class TooManyClausesError extends Error {}

/** Keywords of one expression, and operations on its disjunctions. */
export class NormalForm {
    readonly #numbers = new Map<string, bigint>();
    #required = 0n;
    #steps = 0;

    /** Return one clause with one keyword. */
    literal(keyword: string, isExcluded: boolean): Clauses {
        const number = this.#numbers.get(keyword) ?? BigInt(this.#numbers.size);
        this.#numbers.set(keyword, number);
        this.#required |= 1n << (2n * number);
        return new Set([1n << (2n * number + (isExcluded ? 1n : 0n))]);
    }

    /** Return a disjunction that matches if at least one part matches. */
    anyOf(parts: readonly Clauses[]): Clauses {
        return this.#absorbed(new Set(parts.flatMap((part) => [...part])));
    }

    /** Return a disjunction that matches if all parts match. */
    allOf(parts: readonly Clauses[]): Clauses {
        const shortestFirst = [...parts].sort((one, other) => one.size - other.size);
        return shortestFirst.reduce(
            (found, part) => this.#product(found, part),
            new Set([0n]) as Clauses,
        );
    }

    /** Return clauses as keywords, sorted. */
    clauses(found: Clauses): Required<Clause>[] {
        const chosen = (bits: bigint) =>
            [...this.#numbers]
                .filter(([, number]) => ((bits >> (2n * number)) & 1n) === 1n)
                .map(([keyword]) => keyword)
                .sort(byCodePoint);
        return [...found]
            .map((one) => ({ required: chosen(one), excluded: chosen(one >> 1n) }))
            .sort(
                (one, other) =>
                    byTexts(one.required, other.required) || byTexts(one.excluded, other.excluded),
            );
    }

    #product(left: Clauses, right: Clauses): Clauses {
        let found: Set<bigint> = new Set();
        for (const one of right) {
            this.#spend(left.size);
            for (const other of left) {
                const both = one | other;
                if ((both & (both >> 1n) & this.#required) === 0n) found.add(both);
            }
            if (found.size > INTERMEDIATE_MAX) found = this.#absorbed(found);
        }
        return this.#absorbed(found);
    }

    /** Drop each clause that has all bits of another, smaller clause. */
    #absorbed(clauses: ReadonlySet<bigint>): Set<bigint> {
        const sized = [...clauses].map((one) => ({ one, size: bitCount(one) }));
        sized.sort((a, b) => a.size - b.size);
        const kept: { one: bigint; size: number }[] = [];
        for (const { one, size } of sized) {
            const shorter = kept.filter((other) => other.size < size);
            this.#spend(shorter.length);
            if (!shorter.some((other) => (other.one & one) === other.one)) kept.push({ one, size });
        }
        if (kept.length > INTERMEDIATE_MAX) throw new TooManyClausesError();
        return new Set(kept.map(({ one }) => one));
    }

    #spend(steps: number): void {
        this.#steps += steps;
        if (this.#steps > STEPS_MAX) throw new TooManyClausesError();
    }
}

function bitCount(bits: bigint): number {
    let count = 0;
    for (let rest = bits; rest > 0n; rest &= rest - 1n) count += 1;
    return count;
}

function byTexts(one: readonly string[], other: readonly string[]): number {
    for (let i = 0; i < Math.min(one.length, other.length); i += 1) {
        const difference = byCodePoint(one[i] as string, other[i] as string);
        if (difference !== 0) return difference;
    }
    return one.length - other.length;
}
