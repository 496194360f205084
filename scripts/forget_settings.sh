# shellcheck shell=sh
# Unset the variables of the caller's shell that configure an installation. To be sourced.
# The variables for `make` itself stay: PORT, PYTHON, CI, CHROMIUM, DEMO_PASSWORD, TEST_DATABASE_URL.
for name in $(env | sed -n 's/^\(\(TOOLBELT\|OTEL\)_[A-Za-z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done
unset SECRET_KEY SECRET_KEY_FALLBACKS ALLOWED_HOSTS CSRF_TRUSTED_ORIGINS DEBUG DATABASE_URL REDIS_URL
unset DJANGO_SETTINGS_MODULE PROMETHEUS_MULTIPROC_DIR FORWARDED_ALLOW_IPS
