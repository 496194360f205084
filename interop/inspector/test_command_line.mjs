// Does the Inspector's command line get on with Toolbelt, in both eras of the protocol? It connects, asks once, and ends:
// so there is nothing here on subscribing, which the other parts prove.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";

import * as kit from "./kit.mjs";

// It keeps a catalog of servers in the home directory; here it gets a home of its own.
const HOME = mkdtempSync(join(tmpdir(), "toolbelt-inspector-"));

/** Run the Inspector once; give how it ended and what it printed. */
function inspect(era, method, { agent = kit.AGENT, token = kit.TOKENS[agent], more = [] } = {}) {
  const given = ["--cli", kit.endpoint(agent), "--transport", "http", "--header", `Authorization: Bearer ${token}`];
  given.push("--protocol-era", era, "--method", method, "--format", "json", "--quiet", ...more);
  return new Promise((resolve) => {
    execFile("mcp-inspector", given, { env: { ...process.env, HOME } }, (error, stdout, stderr) => {
      resolve({ code: error ? error.code : 0, stdout, stderr });
    });
  });
}

async function answered(...asked) {
  const { code, stdout, stderr } = await inspect(...asked);
  assert.equal(code, 0, stderr + stdout);
  const said = JSON.parse(stdout);
  return said.result ?? said;
}

const calling = (tool, given) => ({ more: ["--tool-name", tool, "--tool-args-json", JSON.stringify(given)] });

for (const era of ["legacy", "modern"]) {
  describe(`the Inspector in the ${era} era`, () => {
    it("lists what the agent may use, and finds its schemas portable", async () => {
      const { tools } = await answered(era, "tools/list", { more: ["--strict"] });
      const expected = ["call_tool", "desk__add", "desk__fail", "desk__order", "desk__wait", "search_tools"];
      assert.deepEqual(kit.own(tools), expected);
      const guests = await answered(era, "tools/list", { agent: kit.OTHER_AGENT });
      assert.deepEqual(kit.own(guests.tools), ["desk__wait"]);
    });

    it("calls a tool", async () => {
      const result = await answered(era, "tools/call", calling("desk__add", { a: 2, b: 40 }));
      assert.deepEqual(result.structuredContent, { sum: 42 });
    });

    it("finds and calls what the agent could load", async () => {
      const found = await answered(era, "tools/call", calling("search_tools", { query: "put a note" }));
      assert.match(found.content[0].text, /desk__add_note/);
      const given = { tool: "desk__add_note", arguments: { text: era } };
      assert.match((await answered(era, "tools/call", calling("call_tool", given))).content[0].text, /Noted/);
    });

    it("is refused what was hidden a moment ago", async () => {
      const { code, stderr } = await kit.withSwitchOff("arithmetic", () =>
        inspect(era, "tools/call", calling("desk__add", { a: 1, b: 2 })),
      );
      assert.notEqual(code, 0);
      assert.match(stderr, /desk__add|-32602/);
    });

    it("is refused without the agent's own token", async () => {
      for (const token of ["tb_wrong", kit.TOKENS[kit.OTHER_AGENT]]) {
        const { code } = await inspect(era, "tools/list", { token, more: ["--stored-auth-only"] });
        assert.notEqual(code, 0);
      }
    });
  });
}
