// Tests that the official TypeScript SDK's clients sign in by themselves, knowing only an agent's address.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as v2 from "@modelcontextprotocol/client";
import { UnauthorizedError as FirstUnauthorized } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import * as kit from "./kit.mjs";
import { Person } from "./person.mjs";

const CLIENT_INFO = { name: "interop", version: "1" };
const REDIRECT = "http://localhost:3040/callback";

/** What a client keeps, and the address that it opens in a browser. */
class Provider {
  redirectUrl = REDIRECT;
  clientMetadata = { client_name: "TypeScript client", redirect_uris: [REDIRECT] };
  opened;
  #client;
  #tokens;
  #verifier;

  state = () => (this.expected = crypto.randomUUID());
  clientInformation = () => this.#client;
  saveClientInformation = (client) => void (this.#client = client);
  tokens = () => this.#tokens;
  saveTokens = (tokens) => void (this.#tokens = tokens);
  redirectToAuthorization = (url) => void (this.opened = url);
  saveCodeVerifier = (verifier) => void (this.#verifier = verifier);
  codeVerifier = () => this.#verifier;
  invalidateCredentials = (scope) => {
    if (scope === "all" || scope === "client") this.#client = undefined;
    if (scope === "all" || scope === "tokens") this.#tokens = undefined;
  };
}

const CLIENTS = [
  ["@modelcontextprotocol/sdk", FirstClient, FirstTransport, FirstUnauthorized, undefined],
  ["@modelcontextprotocol/client", v2.Client, v2.StreamableHTTPClientTransport, v2.UnauthorizedError, undefined],
  [
    "@modelcontextprotocol/client in the second era",
    v2.Client,
    v2.StreamableHTTPClientTransport,
    v2.UnauthorizedError,
    { versionNegotiation: { mode: "auto" } },
  ],
];

for (const [name, Client, Transport, Unauthorized, options] of CLIENTS) {
  test(`${name} signs in, calls, refreshes, and asks again after a revocation`, async () => {
    const person = await Person.create();
    const provider = new Provider();
    const address = new URL(kit.endpoint(kit.AGENT));

    /** Connect, and let the person allow it if the client asks. */
    async function connected() {
      const client = new Client(CLIENT_INFO, options);
      let transport = new Transport(address, { authProvider: provider });
      try {
        await client.connect(transport);
        return client;
      } catch (error) {
        assert.ok(error instanceof Unauthorized, error);
      }
      const back = await person.allow(provider.opened);
      assert.equal(back.searchParams.get("state"), provider.expected);
      await transport.finishAuth(Transport === FirstTransport ? back.searchParams.get("code") : back.searchParams);
      const again = new Client(CLIENT_INFO, options);
      transport = new Transport(address, { authProvider: provider });
      await again.connect(transport);
      return again;
    }

    const client = await connected();
    const { tools } = await client.listTools();
    assert.ok(kit.testedTools(tools).includes("desk__add"), kit.testedTools(tools));
    const result = await client.callTool({ name: "desk__add", arguments: { a: 2, b: 3 } });
    assert.ok(!result.isError, JSON.stringify(result));
    assert.equal(person.asked, 1);

    // An access token that is no longer valid is replaced without asking.
    const first = provider.tokens().access_token;
    provider.saveTokens({ ...provider.tokens(), access_token: "tb_expired" });
    assert.ok((await client.listTools()).tools.length);
    assert.notEqual(provider.tokens().access_token, first);
    assert.equal(person.asked, 1);
    await client.close();

    // Its own revocation ends the connection: the person is asked again.
    const { access_token: token } = provider.tokens();
    const body = new URLSearchParams({ token, client_id: provider.clientInformation().client_id });
    assert.equal((await fetch(`${kit.ADDRESS}/oauth/revoke`, { method: "POST", body })).status, 200);
    const last = await connected();
    assert.ok((await last.listTools()).tools.length);
    assert.equal(person.asked, 2);
    await last.close();
  });
}
