"""Logging in and out."""

from __future__ import annotations

from django.contrib.auth import views
from django.contrib.auth.decorators import login_not_required
from django.utils.decorators import method_decorator


@method_decorator(login_not_required, name="dispatch")
class Login(views.LoginView):
    """The login page; who is logged in already goes on."""

    template_name = "login.html"
    redirect_authenticated_user = True


class Logout(views.LogoutView):
    """Logging out, by POST alone."""
