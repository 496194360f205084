// Tests of the official TypeScript SDK's clients with Toolbelt: the 1.x line, and 2.x in both eras of the protocol.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import * as v2 from "@modelcontextprotocol/client";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

import * as kit from "./kit.mjs";

const HANDSHAKE = "2025-11-25";
const MODERN = "2026-07-28";
const CLIENT_INFO = { name: "interop", version: "1" };

/** Return a transport's options, and a promise that resolves when the stream of messages is open. */
function transportOptions(agent) {
  let opened;
  const open = new Promise((resolve) => (opened = resolve));
  const options = {
    requestInit: { headers: { authorization: `Bearer ${kit.TOKENS[agent]}` } },
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (init?.method === "GET" && response.ok) opened();
      return response;
    },
  };
  return { open, options };
}

async function first(agent, session) {
  const changes = new kit.Changes();
  const { open, options } = transportOptions(agent);
  const client = new FirstClient(CLIENT_INFO);
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => changes.record());
  const transport = new FirstTransport(new URL(kit.endpoint(agent, session)), options);
  await client.connect(transport);
  await kit.inTime(open, "the stream of messages");
  return { client, changes, version: transport.protocolVersion };
}

async function second(agent, session) {
  const changes = new kit.Changes();
  const { open, options } = transportOptions(agent);
  const client = new v2.Client(CLIENT_INFO);
  client.setNotificationHandler("notifications/tools/list_changed", () => changes.record());
  await client.connect(new v2.StreamableHTTPClientTransport(new URL(kit.endpoint(agent, session)), options));
  await kit.inTime(open, "the stream of messages");
  return { client, changes, version: client.getNegotiatedProtocolVersion() };
}

async function modern(agent, session) {
  const changes = new kit.Changes();
  const { options } = transportOptions(agent);
  const client = new v2.Client(CLIENT_INFO, { versionNegotiation: { mode: "auto" } });
  client.setNotificationHandler("notifications/tools/list_changed", () => changes.record());
  await client.connect(new v2.StreamableHTTPClientTransport(new URL(kit.endpoint(agent, session)), options));
  await client.listen({ toolsListChanged: true });
  return { client, changes, version: client.getNegotiatedProtocolVersion() };
}

const CLIENTS = [
  ["@modelcontextprotocol/sdk", HANDSHAKE, first],
  ["@modelcontextprotocol/client", HANDSHAKE, second],
  ["@modelcontextprotocol/client", MODERN, modern],
];

for (const [name, version, connect] of CLIENTS) {
  describe(`${name} at ${version}`, () => {
    const open = [];

    async function connected(agent = kit.AGENT, session = "") {
      const connection = await connect(agent, session);
      open.push(connection.client);
      return connection;
    }

    /** Define a test that closes the clients it has connected. */
    function test(title, action) {
      it(title, async () => {
        try {
          await action();
        } finally {
          await Promise.all(open.splice(0).map((client) => client.close()));
        }
      });
    }

    const names = async (client) => (await client.listTools()).tools.map((tool) => tool.name);
    const call = (client, name, args = {}) => client.callTool({ name, arguments: args });
    const text = (result) => result.content.map((block) => block.text ?? "").join("\n");
    const structuredContent = (result) => {
      assert.ok(!result.isError, text(result));
      return JSON.parse(result.content[0].text);
    };
    const refused = async (promise) => {
      const result = await promise;
      assert.equal(result.isError, true);
      assert.match(text(result), /There is no tool named .* that you may call\./);
    };

    test("the list contains the tools that the agent may use", async () => {
      const desk = await connected();
      assert.equal(desk.version, version);
      const { tools } = await desk.client.listTools();
      const expected = ["call_tool", "desk__add", "desk__fail", "desk__order", "desk__wait", "search_tools"];
      assert.deepEqual(kit.testedTools(tools), expected);
      const add = tools.find((tool) => tool.name === "desk__add");
      assert.deepEqual(add.inputSchema.required, ["a", "b"]);
      assert.equal(add.outputSchema.properties.sum.type, "integer");
      assert.equal(add.annotations.readOnlyHint, true);
      assert.match(desk.client.getInstructions(), /Never add in your head/);
      const guest = await connected(kit.OTHER_AGENT);
      assert.deepEqual(kit.testedTools((await guest.client.listTools()).tools), ["desk__wait"]);
    });

    test("a tool runs, and its result matches the listed schema", async () => {
      const { client } = await connected();
      await client.listTools();
      const result = await call(client, "desk__add", { a: 2, b: 40 });
      assert.deepEqual(structuredContent(result), { sum: 42 });
      assert.deepEqual(result.structuredContent, { sum: 42 });
    });

    test("an error in a tool is a result that the model reads", async () => {
      const { client } = await connected();
      const failed = await call(client, "desk__fail", { because: "rain" });
      assert.equal(failed.isError, true);
      assert.match(text(failed), /The desk is closed: rain\./);
      assert.equal((await call(client, "desk__add", { a: "two" })).isError, true);
    });

    test("hidden and missing tools are refused", async () => {
      const { client } = await connected(kit.OTHER_AGENT);
      await refused(call(client, "desk__add", { a: 1, b: 2 }));
      await refused(call(client, "desk__nothing"));
    });

    test("a flip notifies only the agent's clients, and applies to calls", async () => {
      const desk = await connected();
      const guest = await connected(kit.OTHER_AGENT);
      await kit.withSwitchOff("arithmetic", async () => {
        await desk.changes.waitFor(1);
        assert.ok(!(await names(desk.client)).includes("desk__add"));
        await refused(call(desk.client, "desk__add", { a: 1, b: 2 }));
      });
      await desk.changes.waitFor(2);
      assert.ok((await names(desk.client)).includes("desk__add"));
      assert.equal(guest.changes.count, 0);
      await kit.override("desk__fail", true, kit.OTHER_AGENT);
      try {
        await guest.changes.waitFor(1);
      } finally {
        await kit.override("desk__fail", null, kit.OTHER_AGENT);
      }
      await guest.changes.waitFor(2);
      assert.deepEqual([desk.changes.count, guest.changes.count], [2, 2]);
    });

    test("a call waits until a person approves it, or gets the words with which it is rejected", () =>
      kit.whileAsking("desk__add", { a: { minimum: 500 } }, async () => {
        const { client } = await connected();
        const approved = call(client, "desk__add", { a: 700, b: 2 });
        await kit.decide();
        assert.deepEqual(structuredContent(await approved), { sum: 702 });
        const rejected = call(client, "desk__add", { a: 800, b: Math.floor(Math.random() * 1e9) });
        await kit.decide(`Not with ${name}.`);
        assert.equal((await rejected).isError, true);
        assert.match(text(await rejected), /An operator rejected this call of desk__add: Not with /);
      }));

    test("dispatch searches and calls without changing the list", async () => {
      const { client } = await connected();
      const before = await names(client);
      const { results } = structuredContent(await call(client, "search_tools", { query: "put a note" }));
      assert.ok(results.some((hit) => hit.tool === "desk__add_note" && hit.input_schema.required[0] === "text"));
      const result = await call(client, "call_tool", { tool: "desk__add_note", arguments: { text: version } });
      assert.match(text(result), /Noted/);
      assert.deepEqual(await names(client), before);
    });

    test("loading extends the list if the revision allows it", () =>
      kit.whileListing(async () => {
        const { client, changes } = await connected(kit.AGENT, kit.session());
        const before = await names(client);
        assert.equal(before.includes("load_tools"), version !== MODERN);
        if (version === MODERN) return;
        assert.equal(structuredContent(await call(client, "load_tools", { toolkit: "desk_notes" })).status, "loaded");
        await changes.waitFor(1);
        const added = (await names(client)).filter((tool) => !before.includes(tool));
        assert.deepEqual(added, ["desk__add_note", "desk__read_notes"]);
        assert.match(text(await call(client, "desk__add_note", { text: "hello" })), /Noted: hello/);
      }));
  });
}
