"""Tests the recipe for Vercel's AI SDK as it is documented."""

from __future__ import annotations

import recipe


class TestAISDK(recipe.NodeChecks):
    heading = "Vercel AI SDK"
    client = """
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
const model = createOpenAICompatible({ name: "scripted", baseURL: ADDRESS }).chatModel("scripted");
"""
