import type { Client } from "nearcast";

export async function offer(client: Client): Promise<void> {
    const payload = new TextEncoder().encode("20 % off");
    const sushi = { keywords: ["sushi"], lon: 14.51, lat: 35.9, ttlMs: 3_600_000, payload, key: "bar-7" };
    await client.publish([sushi]);
    for (const { object, distanceM } of await client.search(
        { kind: "topK", keywords: ["sushi"], k: 3, distanceScaleM: 5000 },
        { lon: 14.5, lat: 35.89 },
    )) {
        console.log(String(object.id), Math.round(distanceM));
    }
    await client.retract({ keys: ["bar-7"] });
}
