import { WebSocket } from "ws";
import { connect } from "nearcast";

const client = connect("ws://localhost:7480", { webSocket: WebSocket });

await client.close();
