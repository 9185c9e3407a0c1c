import { connect } from "nearcast";

const client = connect("wss://near.example", { token: () => localStorage.getItem("token") ?? "" });
const device = await client.attach("device-7", { lon: 14.5, lat: 35.89 });
const lunch = await device.subscribe({ kind: "topK", keywords: ["sushi", "tea"] }, { name: "lunch" });
navigator.geolocation.watchPosition(({ coords: c }) => device.move({ lon: c.longitude, lat: c.latitude }));
for await (const change of lunch.changes()) {
    console.log(change.kind, change.rank, change.object.keywords);
}
