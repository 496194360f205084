// Does Toolbelt pass what the official conformance suite asks of servers, at each revision of the protocol?
//
// An agent of its own has the tools that the suite calls by name; server/suite.py gives them, an upstream server
// behind Toolbelt. What does not apply stands in not-applicable-REVISION.yaml, with the reason: the suite fails if
// something else fails or warns, and if one of those passes.

import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import * as kit from "./kit.mjs";

const REVISIONS = ["2025-11-25", "2026-07-28"];
const AGENT = "conformance";

const { text: token } = await kit.operator("POST", "tokens", { agent: AGENT, name: "conformance suite" });
const url = kit.endpoint(AGENT);
// A server's process starts with the first call of an agent, and the suite waits half a second for some answers.
await fetch(url, {
  method: "POST",
  headers: {
    authorization: `Bearer ${token}`,
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
  },
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "test_simple_text" } }),
});
const failed = REVISIONS.filter((revision) => {
  console.log(`\n--- ${revision}`);
  const asked = ["server", "--url", url, "--suite", "all", "--spec-version", revision];
  asked.push("--expected-failures", `not-applicable-${revision}.yaml`);
  asked.push("--output-dir", mkdtempSync(join(tmpdir(), "toolbelt-conformance-")));
  const env = {
    ...process.env,
    CONFORMANCE_URL: url,
    CONFORMANCE_TOKEN: token,
    NODE_OPTIONS: `--import=${pathToFileURL("bearer.mjs")}`,
  };
  const { status, stdout, stderr } = spawnSync("conformance", asked, { env, encoding: "utf8" });
  // All of it where something is wrong; else how it ended.
  console.log(status === 0 ? stdout.slice(stdout.indexOf("=== SUMMARY")) : stdout + stderr);
  return status !== 0;
});
if (failed.length) console.error(`Not as expected at ${failed.join(", ")}.`);
process.exit(failed.length ? 1 : 0);
