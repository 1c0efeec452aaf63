# shellcheck shell=bash
# To be sourced by scripts that start servers on stores of their own. What is set for another server must not reach
# these, least of all the stores that it names.

# Unsets all that names a store.
forget_stores() {
    unset DATABASE_URL DATABASE_URL_FILE HEADMARK_REPLICA_URL HEADMARK_REPLICA_URL_FILE "${!REDIS_@}"
}

# Unsets every setting of a server. $@: variables that are none, and stay.
forget_settings() {
    local name
    forget_stores
    for name in "${!HEADMARK_@}"; do
        case " $* " in *" $name "*) ;; *) unset "$name" ;; esac
    done
}
