// The agent's token for the conformance suite, which has no option for tokens. Node announces each request before it is
// sent, and the token is added then, so the suite needs no proxy.

import { subscribe } from "node:diagnostics_channel";

const { origin, host } = new URL(process.env.CONFORMANCE_URL);
const bearer = `Bearer ${process.env.CONFORMANCE_TOKEN}`;

// Requests of fetch and undici, or of node:http, and only those to Toolbelt, whatever their Host header.
subscribe("undici:request:create", ({ request }) => {
  if (request.origin === origin) request.addHeader("authorization", bearer);
});
subscribe("http.client.request.created", ({ request }) => {
  if (request.getHeader("host") === host) request.setHeader("authorization", bearer);
});
