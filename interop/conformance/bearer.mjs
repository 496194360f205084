// How does a suite that knows no tokens get past the door? Node tells of each request before it is sent, and there the
// agent's token is put on it; so the suite still speaks to Toolbelt itself, and no proxy is between them.

import { subscribe } from "node:diagnostics_channel";

const { origin, host } = new URL(process.env.CONFORMANCE_URL);
const bearer = `Bearer ${process.env.CONFORMANCE_TOKEN}`;

// By fetch and undici, or by node:http; only where it goes to Toolbelt, whatever it says of the host.
subscribe("undici:request:create", ({ request }) => {
  if (request.origin === origin) request.addHeader("authorization", bearer);
});
subscribe("http.client.request.created", ({ request }) => {
  if (request.getHeader("host") === host) request.setHeader("authorization", bearer);
});
