"""The addresses of the dashboard."""

from django.contrib.auth import views as auth
from django.urls import converters, path, register_converter
from django.views.decorators.http import require_safe
from django.views.generic import RedirectView

from toolbelt.web import (
    account,
    agents,
    alerts,
    audit,
    bulk,
    connect,
    connections,
    documents,
    factors,
    help,  # noqa: A004
    home,
    import_export,
    matrix,
    ordering,
    people,
    preview,
    proofs,
    proposals,
    rules,
    session_pages,
    settings,
    status,
    sub_apps,
    switches,
    tokens,
)
from toolbelt.web.access import views as access
from toolbelt.web.call_log import views as calls
from toolbelt.web.compare import views as compare
from toolbelt.web.kit import live, saved_views
from toolbelt.web.loadouts import views as loadouts
from toolbelt.web.login import password_links
from toolbelt.web.login import views as login
from toolbelt.web.plugins import adding, client_plugins, sign_in
from toolbelt.web.plugins import detail as plugin
from toolbelt.web.plugins import listing as plugins
from toolbelt.web.review import approvals, drafts, instructions
from toolbelt.web.review import views as review
from toolbelt.web.search import views as search
from toolbelt.web.toolkits import detail as toolkit
from toolbelt.web.toolkits import editor as toolkit_editor
from toolbelt.web.toolkits import listing as toolkits
from toolbelt.web.tools import detail as tool
from toolbelt.web.tools import listing as tools

app_name = "web"


class Name(converters.StringConverter):
    """A name in a URL, without NUL, because PostgreSQL rejects queries with it."""

    regex = r"[^/\x00]+"


register_converter(Name, "name")

urlpatterns = [
    path("", home.page, name="home"),
    path("search/", search.page, name="search"),
    path("search/tools/", search.tool_options, name="tool_options"),
    path("flip/", search.flip, name="flip"),
    path("live/", live.stream, name="live"),
    path(
        "login/",
        login.LoginView.as_view(),
        name="login",
    ),
    path("login/second-factor/", login.SecondFactorView.as_view(), name="second_factor"),
    path("login/passkey/", login.PasskeyView.as_view(), name="passkey"),
    path("password/", password_links.choose, name="password_link"),
    path("login/provider/", login.to_provider, name="to_provider"),
    path("login/provider/callback/", login.from_provider, name="provider_callback"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("account/", account.page, name="account"),
    path("account/password/", account.change_password, name="change_password"),
    path("account/logins/end/", account.end_other_logins, name="end_other_logins"),
    path("account/logins/<int:login>/end/", account.end_login, name="end_login"),
    path("account/confirm/", factors.confirm, name="confirm_account"),
    path("account/app/", factors.app, name="add_app"),
    path("account/passkeys/", factors.passkey, name="add_passkey"),
    path("account/recovery-codes/", factors.renew_codes, name="recovery_codes"),
    path("account/factors/<int:factor>/rename/", factors.rename, name="rename_passkey"),
    path("account/factors/<int:factor>/remove/", factors.remove, name="remove_factor"),
    path("account/servers/<name:plugin>/sign-in/", sign_in.begin_own, name="sign_in_own"),
    path("account/servers/<name:plugin>/sign-out/", sign_in.end_own, name="sign_out_own"),
    path("account/time-zone/", account.change_time_zone, name="change_time_zone"),
    path("account/alerts/", account.change_alerts, name="change_alerts"),
    path("account/density/", account.change_density, name="change_density"),
    path("help/", help.page, name="help"),
    path("help/documents/", documents.page, name="documents"),
    path("help/documents/<path:document>", documents.page, name="document"),
    path("status/", status.page, name="status"),
    path("status/replays/", status.replays, name="replays"),
    # What a form of another address would have done.
    path("proof/", proofs.show, name="proof"),
    path("alerts/", alerts.page, name="alerts"),
    path("alerts/test/", alerts.test, name="test_alert"),
    path("agents/", agents.listing, name="agents"),
    # Not under agents/, where an agent may be named "new".
    path("new/agent/", agents.new, name="new_agent"),
    path("new/agent/save/", agents.create, name="create_agent"),
    path("agents/<name:agent>/", access.page, name="agent_access"),
    path("agents/<name:agent>/bulk/", bulk.of_agent, name="bulk_agent"),
    path("agents/<name:agent>/effect/<name:key>/", access.effect, name="effect"),
    path("agents/<name:agent>/why/<name:key>/", access.why, name="why"),
    path("agents/<name:agent>/directive/", access.directive, name="directive"),
    path("agents/<name:agent>/preview/", preview.page, name="preview"),
    path("agents/<name:agent>/sessions/", session_pages.page, name="sessions"),
    path("agents/<name:agent>/sessions/evict/", session_pages.evict, name="evict"),
    path("agents/<name:agent>/sessions/clear/", session_pages.clear_label, name="clear_label"),
    path("agents/<name:agent>/history/", audit.history, name="history"),
    path("agents/<name:agent>/connect/", connect.page, name="connect"),
    path("agents/<name:agent>/connect/token/", connect.issue, name="connect_token"),
    path("agents/<name:agent>/connect/first-request/", connect.first_request, name="first_request"),
    path("agents/<name:agent>/settings/", settings.page, name="settings"),
    path("agents/<name:agent>/settings/change/", settings.change, name="change_settings"),
    path("agents/<name:agent>/operators/", settings.set_operators, name="set_operators"),
    path("agents/<name:agent>/archive/", settings.archive, name="archive"),
    path("agents/<name:agent>/switches/<name:toolkit>/", switches.switch, name="switch"),
    path("agents/<name:agent>/overrides/<name:tool>/", switches.override, name="override"),
    path("agents/<name:agent>/reset/", switches.reset, name="reset"),
    path("compare/", compare.page, name="compare"),
    path("compare/copy/", compare.copy, name="copy"),
    path("bulk/", bulk.apply, name="apply_bulk"),
    path("bulk/tools/", bulk.of_tools, name="bulk_tools"),
    path("bulk/agents/", bulk.of_agents, name="bulk_agents"),
    path("bulk/toolkits/<name:toolkit>/", bulk.of_toolkit, name="bulk_toolkit"),
    path("matrix/", matrix.page, name="matrix"),
    path("toolkits/", toolkits.page, name="toolkits"),
    path("toolkits/<name:toolkit>/", toolkit.page, name="toolkit"),
    path("toolkits/<name:toolkit>/block/", toolkit.block, name="block_toolkit"),
    path("toolkits/<name:toolkit>/purge/", toolkit.purge, name="purge_toolkit"),
    path("tools/", tools.page, name="tools"),
    path("tools/<name:tool>/", tool.page, name="tool"),
    path("tools/<name:tool>/block/", tool.block, name="block_tool"),
    path("tools/<name:tool>/purge/", tool.purge, name="purge_tool"),
    path("tools/<name:tool>/recorded/", tool.record, name="record_fields"),
    path("tools/<name:tool>/description/", tool.keep, name="keep_description"),
    path("tools/<name:tool>/labels/", tool.label, name="label_tool"),
    path("loadouts/", loadouts.listing, name="loadouts"),
    path("loadouts/<name:loadout>/", loadouts.page, name="loadout"),
    path("rules/", rules.listing, name="gate_rules"),
    path("rules/<name:gate_rule>/", rules.page, name="gate_rule"),
    path("sub-apps/", sub_apps.listing, name="sub_apps"),
    path("sub-apps/<name:sub_app>/", sub_apps.page, name="sub_app"),
    *loadouts.Editor().urls,
    *sub_apps.Editor().urls,
    *rules.Editor().urls,
    *toolkit_editor.Editor().urls,
    path("views/<name:page>/save/", saved_views.save, name="save_view"),
    path("views/<name:page>/delete/", saved_views.delete, name="delete_view"),
    path("order/<name:kind>/", ordering.swap, name="swap"),
    path("review/", review.page, name="review"),
    path("review/decide/", review.decide, name="decide"),
    path("review/approvals/", approvals.listing, name="approvals"),
    path("review/approvals/decide/", approvals.decide, name="decide_approvals"),
    path("review/approvals/<name:approval>/", approvals.page, name="approval"),
    path("review/approvals/<name:approval>/edit/", approvals.edit, name="edit_approval"),
    path("review/approvals/<name:approval>/revoke/", approvals.revoke, name="revoke_approval"),
    path("review/drafts/", drafts.listing, name="drafts"),
    path("review/drafts/save/", drafts.save, name="save_draft"),
    path("review/drafts/<uuid:draft>/", drafts.page, name="draft"),
    path("review/drafts/<uuid:draft>/proof/", drafts.prove, name="draft_proof"),
    path("review/drafts/<uuid:draft>/apply/", drafts.apply, name="apply_draft"),
    path("review/drafts/<uuid:draft>/observe/", drafts.observe, name="observe_draft"),
    path("review/drafts/<uuid:draft>/schedule/", drafts.schedule, name="schedule_draft"),
    path("review/drafts/<uuid:draft>/rollout/", drafts.roll_out, name="roll_out_draft"),
    path("review/drafts/<uuid:draft>/stop/", drafts.stop, name="stop_draft"),
    path("review/drafts/<uuid:draft>/discard/", drafts.discard, name="discard_draft"),
    path("calls/", calls.page, name="calls"),
    path("calls/download/", calls.download, name="download_calls"),
    path("calls/proposal/", proposals.page, name="propose"),
    path("calls/<int:call>/", calls.detail, name="call"),
    path("belt/", import_export.page, name="import_export"),
    path("belt/export/", import_export.export, name="export_belt"),
    path("belt/check/", import_export.check, name="check_belt"),
    path("belt/import/", import_export.import_, name="import_belt"),
    path("audit/", audit.listing, name="audit_log"),
    path("audit/download/", audit.download, name="download_audit_log"),
    path("audit/<int:entry>/undo/", audit.undo, name="undo"),
    # The earlier address of the audit log, for bookmarks.
    path(
        "changes/",
        require_safe(RedirectView.as_view(pattern_name="web:audit_log", permanent=True, query_string=True)),
        name="earlier_audit_log",
    ),
    path("plugins/", plugins.page, name="plugins"),
    path("plugins/add/", adding.add, name="add_server"),
    path("plugins/add/save/", adding.create, name="save_server"),
    path("plugins/add/file/", adding.page, name="import_servers"),
    path("plugins/add/file/check/", adding.check, name="check_servers"),
    path("plugins/add/file/save/", adding.save, name="save_servers"),
    path("plugins/add/client/", client_plugins.add, name="add_client_plugin"),
    path("plugins/add/client/save/", client_plugins.save, name="save_client_plugin"),
    path("plugins/<name:plugin>/", plugin.page, name="plugin"),
    path("plugins/<name:plugin>/connection/", plugin.reconnect, name="reconnect_plugin"),
    path("plugins/<name:plugin>/declarers/", client_plugins.choose_declarers, name="choose_declarers"),
    path("plugins/<name:plugin>/instructions/", instructions.decide, name="decide_instructions"),
    path("plugins/<name:plugin>/refresh/", plugins.refresh_one, name="refresh_plugin"),
    path("plugins/<name:plugin>/switch/", plugin.switch, name="switch_plugin"),
    path("plugins/<name:plugin>/sign-in/", sign_in.begin, name="sign_in"),
    path("plugins/<name:plugin>/sign-out/", sign_in.end, name="sign_out"),
    # Where authorization servers send people back to, for all servers.
    path("signed-in/", sign_in.come_back, name="signed_in"),
    # Not under plugins/, where a plugin may be named "refresh".
    path("refresh/", plugins.refresh, name="refresh_plugins"),
    path("people/", people.listing, name="people"),
    path("people/new/", people.create, name="create_person"),
    path("people/<name:person>/roles/", people.set_roles, name="person_roles"),
    path("people/<name:person>/active/", people.set_active, name="person_active"),
    path("people/<name:person>/password-link/", people.make_link, name="make_password_link"),
    path("people/<name:person>/password-link/withdraw/", people.withdraw_link, name="withdraw_password_link"),
    path("people/<name:person>/logins/end/", people.end_logins, name="end_logins"),
    path("people/<name:person>/second-factor/", people.reset_second_factor, name="reset_second_factor"),
    path("connections/", connections.listing, name="connections"),
    path("connections/<int:connection>/revoke/", connections.revoke, name="revoke_connection"),
    path("tokens/", tokens.listing, name="tokens"),
    path("tokens/issue/", tokens.issue, name="issue_token"),
    path("tokens/<name:token>/revoke/", tokens.revoke, name="revoke_token"),
]
