import type { Device, Fix } from "nearcast";

/** Take fixes only when they are needed, of a device that moves at 36 metres a second at most. */
export async function look(device: Device, currentFix: () => Promise<Fix>): Promise<void> {
    for (;;) {
        const waitMs = Math.max(1000, Math.min(60_000, device.nextFixIn(36)));
        await new Promise((resolve) => setTimeout(resolve, waitMs));
        device.move(await currentFix());
    }
}
