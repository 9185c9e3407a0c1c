/** What the map page uses of uPlot, for the type checker. */

declare const uPlot: new (
    options: object,
    data: unknown,
    element: HTMLElement,
) => {
    setData(data: unknown): void;
    setSize(size: { width: number; height: number }): void;
    destroy(): void;
};
