// Tests of the Inspector's command line with Toolbelt, in both eras of the protocol. It sends one request and exits, so
// subscriptions are left to the other parts.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";

import * as kit from "./kit.mjs";

// The Inspector keeps a catalog of servers in the home directory, so it gets a new one.
const HOME = mkdtempSync(join(tmpdir(), "toolbelt-inspector-"));

/** Run the Inspector once, and return its exit code and output. */
function inspect(era, method, { agent = kit.AGENT, token = kit.TOKENS[agent], more = [] } = {}) {
  const options = ["--cli", kit.endpoint(agent), "--transport", "http", "--header", `Authorization: Bearer ${token}`];
  options.push("--protocol-era", era, "--method", method, "--format", "json", "--quiet", ...more);
  return new Promise((resolve) => {
    execFile("mcp-inspector", options, { env: { ...process.env, HOME } }, (error, stdout, stderr) => {
      resolve({ code: error ? error.code : 0, stdout, stderr });
    });
  });
}

async function resultOf(...request) {
  const { code, stdout, stderr } = await inspect(...request);
  assert.equal(code, 0, stderr + stdout);
  const output = JSON.parse(stdout);
  return output.result ?? output;
}

const toolCall = (tool, args) => ({ more: ["--tool-name", tool, "--tool-args-json", JSON.stringify(args)] });

for (const era of ["legacy", "modern"]) {
  describe(`the Inspector in the ${era} era`, () => {
    it("lists the tools that the agent may use, with portable schemas", async () => {
      const { tools } = await resultOf(era, "tools/list", { more: ["--strict"] });
      const expected = ["call_tool", "desk__add", "desk__fail", "desk__order", "desk__wait", "search_tools"];
      assert.deepEqual(kit.testedTools(tools), expected);
      const guests = await resultOf(era, "tools/list", { agent: kit.OTHER_AGENT });
      assert.deepEqual(kit.testedTools(guests.tools), ["desk__wait"]);
    });

    it("calls a tool", async () => {
      const result = await resultOf(era, "tools/call", toolCall("desk__add", { a: 2, b: 40 }));
      assert.deepEqual(result.structuredContent, { sum: 42 });
    });

    it("finds and calls a tool that the agent may load", async () => {
      const result = await resultOf(era, "tools/call", toolCall("search_tools", { query: "put a note" }));
      assert.match(result.content[0].text, /desk__add_note/);
      const args = { tool: "desk__add_note", arguments: { text: era } };
      assert.match((await resultOf(era, "tools/call", toolCall("call_tool", args))).content[0].text, /Noted/);
    });

    // The Inspector lists the tools before it calls one, and refuses itself what is not listed.
    it("does not find a tool that was just hidden", async () => {
      const { code, stdout, stderr } = await kit.withSwitchOff("arithmetic", () =>
        inspect(era, "tools/call", toolCall("desk__add", { a: 1, b: 2 })),
      );
      assert.notEqual(code, 0);
      assert.match(stdout + stderr, /'desk__add' not found/);
    });

    it("is refused without the agent's own token", async () => {
      for (const token of ["tb_wrong", kit.TOKENS[kit.OTHER_AGENT]]) {
        const { code } = await inspect(era, "tools/list", { token, more: ["--stored-auth-only"] });
        assert.notEqual(code, 0);
      }
    });
  });
}
