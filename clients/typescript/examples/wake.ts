import type { Device, Fix, OsRegions, Subscription } from "nearcast";

/** Call it when the system wakes the app; `register` replaces the circles that the system monitors. */
export async function wake(
    device: Device,
    near: Subscription,
    fix: Fix,
    register: (regions: OsRegions) => Promise<void>,
): Promise<boolean> {
    device.move(fix); // if the phone has slept, the SDK reconnects, and the exact result waits for it
    await near.exactResults({ signal: AbortSignal.timeout(8000) });
    const regions = near.osRegions(150);
    await register(regions);
    return !regions.mustStayAwake; // whether the app may sleep
}
