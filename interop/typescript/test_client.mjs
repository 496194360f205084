// Do the clients of the official TypeScript SDK get on with Toolbelt? Its 1.x line, and 2.x in both eras of the protocol.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import * as v2 from "@modelcontextprotocol/client";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

import * as kit from "./kit.mjs";

const HANDSHAKE = "2025-11-25";
const MODERN = "2026-07-28";
const NAMED = { name: "interop", version: "1" };

/** Give what a transport needs: the token, and a fetch that says when the stream of messages is open. */
function wired(agent) {
  let opened;
  const open = new Promise((resolve) => (opened = resolve));
  const options = {
    requestInit: { headers: { authorization: `Bearer ${kit.TOKENS[agent]}` } },
    fetch: async (url, init) => {
      const answer = await fetch(url, init);
      if (init?.method === "GET" && answer.ok) opened();
      return answer;
    },
  };
  return { open, options };
}

async function first(agent, session) {
  const changes = new kit.Changes();
  const { open, options } = wired(agent);
  const client = new FirstClient(NAMED);
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => changes.hear());
  const transport = new FirstTransport(new URL(kit.endpoint(agent, session)), options);
  await client.connect(transport);
  await kit.inTime(open, "the stream of messages");
  return { client, changes, version: transport.protocolVersion };
}

async function second(agent, session) {
  const changes = new kit.Changes();
  const { open, options } = wired(agent);
  const client = new v2.Client(NAMED);
  client.setNotificationHandler("notifications/tools/list_changed", () => changes.hear());
  await client.connect(new v2.StreamableHTTPClientTransport(new URL(kit.endpoint(agent, session)), options));
  await kit.inTime(open, "the stream of messages");
  return { client, changes, version: client.getNegotiatedProtocolVersion() };
}

async function modern(agent, session) {
  const changes = new kit.Changes();
  const { options } = wired(agent);
  const client = new v2.Client(NAMED, { versionNegotiation: { mode: "auto" } });
  client.setNotificationHandler("notifications/tools/list_changed", () => changes.hear());
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
      const found = await connect(agent, session);
      open.push(found.client);
      return found;
    }

    /** A test that closes the clients it connected. */
    function test(title, act) {
      it(title, async () => {
        try {
          await act();
        } finally {
          await Promise.all(open.splice(0).map((client) => client.close()));
        }
      });
    }

    const names = async (client) => (await client.listTools()).tools.map((tool) => tool.name);
    const call = (client, tool, given = {}) => client.callTool({ name: tool, arguments: given });
    const text = (result) => result.content.map((block) => block.text ?? "").join("\n");
    const said = (result) => {
      assert.ok(!result.isError, text(result));
      return JSON.parse(result.content[0].text);
    };
    const refused = (promise) =>
      assert.rejects(promise, (error) => {
        assert.equal(error.code, kit.INVALID_PARAMS, String(error));
        return true;
      });

    test("the list holds what the agent may use", async () => {
      const desk = await connected();
      assert.equal(desk.version, version);
      const { tools } = await desk.client.listTools();
      const expected = ["call_tool", "desk__add", "desk__fail", "desk__order", "desk__wait", "search_tools"];
      assert.deepEqual(kit.own(tools), expected);
      const add = tools.find((tool) => tool.name === "desk__add");
      assert.deepEqual(add.inputSchema.required, ["a", "b"]);
      assert.equal(add.outputSchema.properties.sum.type, "integer");
      assert.equal(add.annotations.readOnlyHint, true);
      assert.match(desk.client.getInstructions(), /Never add in your head/);
      const guest = await connected(kit.OTHER_AGENT);
      assert.deepEqual(kit.own((await guest.client.listTools()).tools), ["desk__wait"]);
    });

    test("a tool runs, and its answer fits the schema it was listed with", async () => {
      const { client } = await connected();
      await client.listTools();
      const result = await call(client, "desk__add", { a: 2, b: 40 });
      assert.deepEqual(said(result), { sum: 42 });
      assert.deepEqual(result.structuredContent, { sum: 42 });
    });

    test("what goes wrong in a tool is a result that the model reads", async () => {
      const { client } = await connected();
      const failed = await call(client, "desk__fail", { because: "rain" });
      assert.equal(failed.isError, true);
      assert.match(text(failed), /The desk is closed: rain\./);
      assert.equal((await call(client, "desk__add", { a: "two" })).isError, true);
    });

    test("what is hidden is refused, as is what there is not", async () => {
      const { client } = await connected(kit.OTHER_AGENT);
      await refused(call(client, "desk__add", { a: 1, b: 2 }));
      await refused(call(client, "desk__nothing"));
    });

    test("a flip reaches the agent's clients and no others, and holds for calls", async () => {
      const desk = await connected();
      const guest = await connected(kit.OTHER_AGENT);
      await kit.withSwitchOff("arithmetic", async () => {
        await desk.changes.reach(1);
        assert.ok(!(await names(desk.client)).includes("desk__add"));
        await refused(call(desk.client, "desk__add", { a: 1, b: 2 }));
      });
      await desk.changes.reach(2);
      assert.ok((await names(desk.client)).includes("desk__add"));
      assert.equal(guest.changes.count, 0);
      await kit.override("desk__fail", true, kit.OTHER_AGENT);
      try {
        await guest.changes.reach(1);
      } finally {
        await kit.override("desk__fail", null, kit.OTHER_AGENT);
      }
      await guest.changes.reach(2);
      assert.deepEqual([desk.changes.count, guest.changes.count], [2, 2]);
    });

    test("dispatch searches and calls in a list that stays", async () => {
      const { client } = await connected();
      const before = await names(client);
      const { results } = said(await call(client, "search_tools", { query: "put a note" }));
      assert.ok(results.some((one) => one.tool === "desk__add_note" && one.input_schema.required[0] === "text"));
      const noted = await call(client, "call_tool", { tool: "desk__add_note", arguments: { text: version } });
      assert.match(text(noted), /Noted/);
      assert.deepEqual(await names(client), before);
    });

    test("a list grows by loading where the revision allows it", () =>
      kit.whileListing(async () => {
        const { client, changes } = await connected(kit.AGENT, kit.session());
        const before = await names(client);
        assert.equal(before.includes("load_tools"), version !== MODERN);
        if (version === MODERN) return;
        assert.equal(said(await call(client, "load_tools", { toolkit: "desk_notes" })).status, "loaded");
        await changes.reach(1);
        const grown = (await names(client)).filter((tool) => !before.includes(tool));
        assert.deepEqual(grown, ["desk__add_note", "desk__read_notes"]);
        assert.match(text(await call(client, "desk__add_note", { text: "hello" })), /Noted: hello/);
      }));
  });
}
