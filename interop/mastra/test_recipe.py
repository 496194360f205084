"""Tests the recipe for Mastra as it is documented."""

from __future__ import annotations

import recipe


class TestMastra(recipe.NodeChecks):
    heading = "Mastra"
    prefix = "toolbelt_"
    client = 'const model = { id: "scripted/scripted", url: ADDRESS, apiKey: "none" };'
