import { connect } from "nearcast";
import { GrpcTransport } from "nearcast/grpc";

const client = connect(new GrpcTransport("localhost:7433"));
const device = await client.attach("device-7", { lon: 14.5, lat: 35.89 });
console.log(await device.search({ kind: "topK", keywords: ["sushi"] }));
await client.close();
