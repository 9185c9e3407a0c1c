import { connect } from "nearcast";

const client = connect("wss://near.example", { token: () => localStorage.getItem("token") ?? "" });
const device = await client.attach("device-7", { lon: 14.5, lat: 35.89 });
const best = { kind: "topK", keywords: ["sushi", "tea"], distanceScaleM: 2000 } as const;
const lunch = await device.subscribe(best, { name: "lunch" });
navigator.geolocation.watchPosition(({ coords: c }) => device.move({ lon: c.longitude, lat: c.latitude }));
for await (const change of lunch.changes()) {
    console.log(change.kind, change.rank, change.object.keywords);
}
