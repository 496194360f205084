"""Tests the recipe for Genkit as it is documented."""

from __future__ import annotations

import recipe


class TestGenkit(recipe.NodeChecks):
    heading = "Genkit"
    client = """
import { openAICompatible } from "@genkit-ai/compat-oai";
import { genkit } from "genkit";
const plugin = openAICompatible({ name: "scripted", apiKey: "none", baseURL: ADDRESS });
const model = genkit({ plugins: [plugin], model: "scripted/scripted" });
"""
