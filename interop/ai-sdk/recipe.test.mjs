// Does the recipe for Vercel's AI SDK run as it is documented?

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import test from "node:test";

import { MockLanguageModelV3 } from "ai/test";

const PAGE = new URL("../../docs/how-to/use-with-frameworks.md", import.meta.url);

async function documented() {
  const section = readFileSync(PAGE, "utf8").split("### Vercel AI SDK\n")[1];
  const code = section.split("```js\n")[1].split("```")[0];
  const module = new URL("./documented.mjs", import.meta.url);
  writeFileSync(module, code.replace("/mcp/assistant", `/mcp/${process.env.TOOLBELT_AGENT}`));
  return await import(module);
}

test("the model gets tools and policy, and calls", async () => {
  const seen = [];
  const model = new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      seen.push(JSON.stringify(prompt));
      const usage = { inputTokens: {}, outputTokens: {} };
      if (seen.length > 1) {
        const content = [{ type: "text", text: "Five." }];
        return { content, finishReason: { unified: "stop" }, usage, warnings: [] };
      }
      const call = { type: "tool-call", toolCallId: "c1", toolName: "desk__add", input: '{"a":2,"b":3}' };
      return { content: [call], finishReason: { unified: "tool-calls" }, usage, warnings: [] };
    },
  });
  const { answer } = await documented();
  assert.equal(await answer(model, "What is it?"), "Five.");
  assert.match(seen[0], /Never add in your head/);
  assert.match(seen[1], /sum/);
});
