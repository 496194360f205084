"""What is kept? The rows, by what they hold: what exists, who consumes it, what was loaded, what was changed."""

from toolbelt.models.access import AgentOperator, ApiToken
from toolbelt.models.agents import (
    Agent,
    AgentTool,
    AgentToolkit,
    ToolkitSwitch,
    ToolOverride,
)
from toolbelt.models.audit import AuditEntry
from toolbelt.models.calls import CallRecord
from toolbelt.models.cancellations import Cancellation
from toolbelt.models.catalog import (
    Category,
    Loadout,
    Member,
    Plugin,
    Tool,
    Toolkit,
)
from toolbelt.models.listings import Listing
from toolbelt.models.plugin_state import PluginState
from toolbelt.models.revisions import AgentRevision, Revision
from toolbelt.models.sessions import AgentSession
from toolbelt.models.sub_apps import SubApp, SubAppAgent, SubAppTool
from toolbelt.models.subscriptions import ResourceSubscription

__all__ = [
    "Agent",
    "AgentOperator",
    "AgentRevision",
    "AgentSession",
    "AgentTool",
    "AgentToolkit",
    "ApiToken",
    "AuditEntry",
    "CallRecord",
    "Cancellation",
    "Category",
    "Listing",
    "Loadout",
    "Member",
    "Plugin",
    "PluginState",
    "ResourceSubscription",
    "Revision",
    "SubApp",
    "SubAppAgent",
    "SubAppTool",
    "Tool",
    "ToolOverride",
    "Toolkit",
    "ToolkitSwitch",
]
