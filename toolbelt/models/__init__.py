"""The Django models: what exists, who uses it, what was loaded, and what was changed."""

from toolbelt.models.access import AgentOperator, ApiToken
from toolbelt.models.agent_sessions import AgentSession
from toolbelt.models.agents import (
    Agent,
    AgentTool,
    AgentToolkit,
    ToolkitSwitch,
    ToolOverride,
)
from toolbelt.models.alerts import Alert, AlertDelivery
from toolbelt.models.applied_belts import AppliedBelt
from toolbelt.models.audit import AuditEntry
from toolbelt.models.call_approvals import Approval
from toolbelt.models.call_records import CallRecord, SessionState
from toolbelt.models.cancellations import Cancellation
from toolbelt.models.catalog import (
    Category,
    Loadout,
    Member,
    Plugin,
    Tool,
    Toolkit,
)
from toolbelt.models.client_connections import ClientConnection, SignInAttempt
from toolbelt.models.context_use import ContextUse
from toolbelt.models.conversations import Start, Told
from toolbelt.models.drafts import Draft, Rollout, Trial, TrialDay
from toolbelt.models.first_lists import FirstList
from toolbelt.models.gate_rules import CallCount, GateRule
from toolbelt.models.learned_words import LearnedWords
from toolbelt.models.listings import Listing
from toolbelt.models.log_levels import LogLevel
from toolbelt.models.logins import Login, PasswordLink
from toolbelt.models.open_questions import OpenQuestion
from toolbelt.models.plugin_state import PluginState
from toolbelt.models.preferences import Preferences, SavedView
from toolbelt.models.purges import Purge
from toolbelt.models.revisions import AgentRevision, Revision
from toolbelt.models.running_processes import RunningProcess
from toolbelt.models.self_checks import SelfCheck
from toolbelt.models.server_sign_ins import BegunSignIn, ServerSignIn
from toolbelt.models.sub_apps import SubApp, SubAppAgent, SubAppTool
from toolbelt.models.subscriptions import ResourceSubscription
from toolbelt.models.upstream_connections import UpstreamConnection

__all__ = [
    "Agent",
    "AgentOperator",
    "AgentRevision",
    "AgentSession",
    "AgentTool",
    "AgentToolkit",
    "Alert",
    "AlertDelivery",
    "ApiToken",
    "AppliedBelt",
    "Approval",
    "AuditEntry",
    "BegunSignIn",
    "CallCount",
    "CallRecord",
    "Cancellation",
    "Category",
    "ClientConnection",
    "ContextUse",
    "Draft",
    "FirstList",
    "GateRule",
    "LearnedWords",
    "Listing",
    "Loadout",
    "LogLevel",
    "Login",
    "Member",
    "OpenQuestion",
    "PasswordLink",
    "Plugin",
    "PluginState",
    "Preferences",
    "Purge",
    "ResourceSubscription",
    "Revision",
    "Rollout",
    "RunningProcess",
    "SavedView",
    "SelfCheck",
    "ServerSignIn",
    "SessionState",
    "SignInAttempt",
    "Start",
    "SubApp",
    "SubAppAgent",
    "SubAppTool",
    "Told",
    "Tool",
    "ToolOverride",
    "Toolkit",
    "ToolkitSwitch",
    "Trial",
    "TrialDay",
    "UpstreamConnection",
]
