#!/usr/bin/env bash
# Private Postgres and Redis for one command: on free ports of 127.0.0.1, apart from any that the machine already runs. Every
# local account reaches these ports, so both engines ask for a password, which is random for each run. It stands in files
# that only their owner can read and in the environment of COMMAND, never in the arguments of a process or in a log.
# Whatever ends the command or this script (success, failure, Ctrl-C, TERM, even KILL), the engines go with it: a keeper
# in a process group of its own waits for the script's end and clears up.
#
# To add an engine: find it in `find_engines`, start it in `start_engines`, stop it in `keep`, install it in `install`.
set -euo pipefail
unset CDPATH

usage() {
    cat <<'END'
Usage:
  scripts/engines.sh with [--durable] [--pooler] -- COMMAND…   run COMMAND on fresh engines in a temporary folder, then
                                                               remove them
  scripts/engines.sh run DIR -- COMMAND…                       run COMMAND on engines whose data stays under DIR
  scripts/engines.sh remove DIR                                remove that data
  scripts/engines.sh install                                   install what is missing, pgbouncer too (Debian, Ubuntu),
                                                               starting no service

with sets HEADMARK_TEST_POSTGRES and HEADMARK_TEST_REDIS (URLs), HEADMARK_TEST_DIR (an empty folder that goes with the
     engines, in memory where there is room), HEADMARK_PG_BIN (the folder of initdb, postgres and pg_ctl) and, for root
     only, HEADMARK_PG_OWNER (uid:gid), since Postgres refuses to run as root: anyone who starts another cluster from
     COMMAND gives it that owner. Without --durable Postgres skips fsync, so that only a crash of the machine, never one
     of the server, can lose a commit; with it, it has buffers of 2 GB, as for measuring. With --pooler pgbouncer is in
     PATH: a test of the program puts it before Postgres, and nothing else needs it. COMMAND gets no setting of another
     server (DATABASE_URL, REDIS_*, HEADMARK_*); HEADMARK_BIN and HEADMARK_TEST_LOG stay.
run  sets DATABASE_URL and REDIS_URL, and writes them to DIR/urls while it runs. Postgres is durable; Redis keeps nothing,
     being a cache. COMMAND gets no other store; other settings stay.

COMMAND reads no terminal. Its exit status is passed on.
END
}

say() { printf 'engines: %s\n' "$*" >&2; }
die() {
    say "$@"
    exit 1
}

# ---- finding the engines ------------------------------------------------------------------------------------------

MIN_PG=15
MIN_REDIS=7

# The first number in what a program says about its version.
major_of() { "$1" --version 2>/dev/null | sed -n '1s/^[^0-9]*\([0-9][0-9]*\).*/\1/p'; }

pg_folders() {
    if [ -n "${HEADMARK_PG_BIN:-}" ]; then
        printf '%s\n' "$HEADMARK_PG_BIN"
        return
    fi
    local initdb
    if initdb=$(command -v initdb); then dirname "$initdb"; fi
    printf '%s\n' /usr/lib/postgresql/*/bin /usr/pgsql-*/bin \
        /opt/homebrew/opt/postgresql@*/bin /opt/homebrew/opt/postgresql/bin \
        /usr/local/opt/postgresql@*/bin /usr/local/opt/postgresql/bin /usr/local/pgsql/bin \
        /Applications/Postgres.app/Contents/Versions/latest/bin
}

# Sets pg_bin, pg_major and redis_server, empty where nothing will do. $1: the only Postgres version that will do.
find_engines() {
    local folder program major
    pg_bin='' pg_major=0 redis_server=''
    while read -r folder; do
        for program in initdb postgres pg_ctl psql; do
            [ -x "$folder/$program" ] || continue 2
        done
        major=$(major_of "$folder/postgres")
        if [ "${major:-0}" -ge "$MIN_PG" ] && [ "$major" -gt "$pg_major" ] && [ "$major" = "${1:-$major}" ]; then
            pg_bin=$folder pg_major=$major
        fi
    done < <(pg_folders)

    for program in redis-server /opt/homebrew/opt/redis/bin/redis-server /usr/local/opt/redis/bin/redis-server; do
        program=$(command -v "$program") || continue
        major=$(major_of "$program")
        if [ "${major:-0}" -ge "$MIN_REDIS" ]; then
            redis_server=$program
            break
        fi
    done
    [ -n "$pg_bin" ] && [ -n "$redis_server" ]
}

# Sets pgbouncer, which a test puts before Postgres. Debian has it where ordinary accounts do not look.
find_pooler() { pgbouncer=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v pgbouncer) || pgbouncer=''; }

# All that is wanted. $1: as in find_engines.
find_wanted() {
    find_pooler
    find_engines "${1:-}" && { [ -z "$with_pooler" ] || [ -n "$pgbouncer" ]; }
}

say_missing() {
    [ -n "$pg_bin" ] || say "found no Postgres $MIN_PG or newer (a folder with initdb, postgres, pg_ctl and psql)"
    [ -n "$redis_server" ] || say "found no Redis $MIN_REDIS or newer (redis-server)"
    if [ -n "$with_pooler" ] && [ -z "$pgbouncer" ]; then say "found no pgbouncer"; fi
}

# ---- installing them ----------------------------------------------------------------------------------------------

# shellcheck source=scripts/as_root.sh
. "$(dirname "${BASH_SOURCE[0]}")/as_root.sh"
# shellcheck source=scripts/forget_settings.sh
. "$(dirname "${BASH_SOURCE[0]}")/forget_settings.sh"

# Whether apt would install version $2 of package $1, or a newer one. $3: where such packages are.
is_offered() {
    local major
    major=$(LC_ALL=C apt-cache policy "$1" | sed -n 's/^ *Candidate: \([0-9]*:\)\{0,1\}\([0-9]*\).*/\2/p')
    # Where apt knows none at all, it says so itself.
    if [ "${major:-$2}" -lt "$2" ]; then
        say "this system's package $1 is version $major; add the packages of $3, which has newer ones"
        return 1
    fi
}

# $1: as in find_wanted, which must have failed before.
install_engines() {
    local packages=() too_old=''
    say_missing
    if ! command -v apt-get >/dev/null; then
        die "install PostgreSQL $MIN_PG or newer and Redis $MIN_REDIS or newer, and for make test pgbouncer;" \
            "with Homebrew: brew install postgresql@16 redis pgbouncer"
    fi
    [ -n "$pg_bin" ] || packages+=(postgresql)
    [ -n "$redis_server" ] || packages+=(redis-server)
    if [ -n "$with_pooler" ] && [ -z "$pgbouncer" ]; then packages+=(pgbouncer); fi

    as_root apt-get update -qq >&2 || say "apt-get update failed; going on with the lists at hand"
    if [ -z "$pg_bin" ]; then is_offered postgresql "$MIN_PG" https://www.postgresql.org/download/ || too_old=1; fi
    if [ -z "$redis_server" ]; then is_offered redis-server "$MIN_REDIS" https://redis.io/downloads/ || too_old=1; fi
    [ -z "$too_old" ] || die "nothing was installed"

    say "installing ${packages[*]}"
    # No service may start, now (policy-rc.d answers 101) or at the next boot (no cluster is made, Redis is not enabled).
    # shellcheck disable=SC2016 # the inner shell expands these
    as_root sh -euc '
        policy=/usr/sbin/policy-rc.d clusters=/etc/postgresql-common/createcluster.d/headmark.conf
        trap "exit 1" INT TERM HUP
        if [ -e "$policy" ]; then
            trap "rm -f $clusters" EXIT
        else
            trap "rm -f $clusters $policy" EXIT
            printf "#!/bin/sh\nexit 101\n" >"$policy"
            chmod 755 "$policy"
        fi
        mkdir -p "${clusters%/*}"
        echo "create_main_cluster = false" >"$clusters"

        export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
        apt-get install -y -qq --no-install-recommends "$@"
        for service in redis-server pgbouncer; do
            case " $* " in *" $service "*)
                update-rc.d "$service" disable || systemctl disable "$service" || true ;;
            esac
        done
    ' install "${packages[@]}" >&2

    if ! find_wanted "${1:-}"; then
        say_missing
        die "what was installed will not do; see https://www.postgresql.org/download/ and https://redis.io/downloads/"
    fi
}

# ---- the account they run as --------------------------------------------------------------------------------------

# Sets owner (uid:gid) if the engines must run as somebody else, because we are root. $1: existing data, whose owner it is.
find_owner() {
    owner=''
    [ "$(id -u)" = 0 ] || return 0
    local account
    if [ -e "${1:-}" ]; then
        # shellcheck disable=SC2012 # stat is not the same everywhere, and the name comes last
        owner=$(ls -ldn "$1" | awk '{ print $3 ":" $4 }')
        return
    fi
    for account in postgres nobody; do
        if id -u "$account" >/dev/null 2>&1; then
            owner=$(id -u "$account"):$(id -g "$account")
            return
        fi
    done
    die "Postgres refuses to run as root, and there is no account postgres or nobody to run it as"
}

# Turns this (sub)shell into a program of the owner's, in a folder that the owner may enter, and without the lock (8) and
# the keeper's pipe (9): an engine that held these would keep them beyond the script's end.
become_owner() {
    cd "$tmp"
    if [ -z "$owner" ]; then
        exec "$@" 8>&- 9>&-
    elif command -v setpriv >/dev/null; then
        exec setpriv --reuid "${owner%:*}" --regid "${owner#*:}" --clear-groups -- "$@" 8>&- 9>&-
    else
        exec sudo -u "#${owner%:*}" -g "#${owner#*:}" -- "$@" 8>&- 9>&-
    fi
}

as_owner() (become_owner "$@")

# ---- starting and stopping ----------------------------------------------------------------------------------------

# One line for each process: its id, its group, its state.
processes() {
    if [ -r /proc/self/stat ]; then
        { cat /proc/[0-9]*/stat 2>/dev/null || true; } | sed 's/^\([0-9]*\) (.*) \([A-Z]\) [0-9]* \([0-9]*\) .*/\1 \3 \2/'
    else
        ps -A -o pid=,pgid=,stat=
    fi
}

# $1: a process, or a group with a minus before it. Zombies do not count: where the first process of a container reaps
# none, they stay.
running() {
    kill -0 -- "$1" 2>/dev/null &&
        processes | awk -v id="$1" '($1 == id || -$2 == id) && $3 !~ /^Z/ { found = 1 } END { exit !found }'
}

# Waits until the command in $2… fails; fails itself after $1 seconds.
await_end() {
    local rounds=$(($1 * 20))
    shift
    while "$@"; do
        [ $((rounds -= 1)) -gt 0 ] || return 1
        sleep 0.05
    done
}

args_of() {
    if [ -r "/proc/$1/cmdline" ]; then
        tr '\0' ' ' <"/proc/$1/cmdline"
    else
        ps -o args= -p "$1" 2>/dev/null || true
    fi
}

# Sets port to one that nobody answers on, below those that systems give to outgoing connections. Two runs that draw the
# same meet again when they bind it, and the second draws again.
draw_port() {
    while :; do
        port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
        (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || return 0
    done
}

bind_failed() { grep -qi 'address already in use' "$1"; }

# Sets password. Hexadecimal digits need no quotes in any of the files and URLs that it goes into.
draw_password() {
    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    [ ${#password} = 32 ] || die "cannot draw a password from /dev/urandom"
}

# Writes its input to the file $1, which then only its owner, the engines' account, can read.
write_secret() {
    rm -f "$1"
    (umask 077 && cat >"$1")
    [ -z "$owner" ] || chown "$owner" "$1"
}

redis_settings() {
    cat <<END
bind 127.0.0.1
port $port
dir "$tmp"
save ""
appendonly no
requirepass $password
END
}

start_redis() {
    local attempt pid port log=$tmp/redis.log
    for attempt in 1 2 3 4 5 6 7 8; do
        draw_port
        : >"$log"
        redis_settings | write_secret "$tmp/redis.conf"
        become_owner "$redis_server" "$tmp/redis.conf" </dev/null >"$log" 2>&1 &
        pid=$!
        printf '%s\n' "$pid" >"$tmp/redis.pid"
        while running "$pid"; do
            if grep -q 'Ready to accept connections' "$log"; then
                printf '%s\n' "$port" >"$tmp/redis.port"
                return
            fi
            sleep 0.05
        done
        bind_failed "$log" || break
    done
    cat "$log" >&2
    die "Redis did not start (attempt $attempt)"
}

# $1: the folder of a run.
stop_redis() {
    local pid
    pid=$(cat "$1/redis.pid" 2>/dev/null) || return 0
    kill "$pid" 2>/dev/null || return 0
    await_end 10 running "$pid" || kill -KILL "$pid" 2>/dev/null || true
}

create_cluster() {
    # Who may connect follows from a file of our own, written at each start.
    local options=(--username=headmark --auth=reject --encoding=UTF8 --locale=C)
    if [ -z "$home" ]; then options+=(--no-sync); fi
    # Made beside its place, so that an interrupted run leaves no half of a cluster.
    rm -rf "$data.new"
    mkdir -m 700 "$data.new"
    if [ -n "$owner" ]; then chown "$owner" "$data.new"; fi
    if ! as_owner "$pg_bin/initdb" "${options[@]}" --pgdata="$data.new" </dev/null >"$tmp/initdb.log" 2>&1; then
        cat "$tmp/initdb.log" >&2
        die "initdb failed"
    fi
    printf "include_if_exists = 'engines.conf'\n" >>"$data.new/postgresql.conf"
    mv "$data.new" "$data"
}

cluster_settings() {
    cat <<END
# Written at each start by scripts/engines.sh. Settings of your own go to the end of postgresql.conf.
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = '$tmp'
hba_file = '$data/engines_hba.conf'
max_connections = 400
shared_buffers = $buffers
END
    # synchronous_commit stays on: a commit is in the log before it is answered, and survives the server's own crash.
    if [ -z "$durable" ]; then printf '%s\n' 'fsync = off' 'full_page_writes = off'; fi
}

# The password of this run, also for data that an earlier run made. A server in single-user mode asks nobody for one, listens
# nowhere and reads the statement from a pipe. $1: how the password is stored.
set_password() {
    local quiet=(-c log_statement=none -c log_min_duration_statement=-1 -c log_min_error_statement=panic)
    printf "alter role headmark password '%s'\n" "$password" |
        as_owner "$pg_bin/postgres" --single -D "$data" "${quiet[@]}" -c password_encryption="$1" postgres \
            >"$tmp/single.log" 2>&1 && ! grep -E 'ERROR|FATAL' "$tmp/single.log" >&2
}

start_postgres() {
    local attempt port log=$tmp/postgres.log
    [ -e "$data" ] || create_cluster
    clear_stale_server
    # It is a random one of this run. SCRAM takes ten milliseconds of processor time for each of the tens of thousands of
    # connections that the tests open; MD5 takes none, but a newer Postgres may not know it.
    if ! set_password md5 2>/dev/null && ! set_password scram-sha-256; then
        cat "$tmp/single.log" >&2
        die "Postgres did not take the password"
    fi
    # It takes a password that is stored either way.
    printf '%s\n' 'local all all md5' 'host all all 127.0.0.1/32 md5' | write_secret "$data/engines_hba.conf"
    for attempt in 1 2 3 4 5 6 7 8; do
        draw_port
        : >"$log"
        cluster_settings >"$data/engines.conf"
        if [ -n "$owner" ]; then chown "$owner" "$log" "$data/engines.conf"; fi
        if as_owner "$pg_bin/pg_ctl" start --silent --wait --timeout=300 --pgdata="$data" --log="$log" \
            </dev/null >"$tmp/pg_ctl.log" 2>&1; then
            printf '%s\n' "$port" >"$tmp/postgres.port"
            return
        fi
        bind_failed "$log" || break
    done
    cat "$tmp/pg_ctl.log" "$log" >&2
    die "Postgres did not start (attempt $attempt)"
}

# $1: fast, with a last checkpoint, or immediate, when the data goes too.
stop_postgres() {
    local pid
    pid=$(head -n 1 "$data/postmaster.pid" 2>/dev/null) || return 0
    as_owner "$pg_bin/pg_ctl" stop --silent --wait --timeout=60 --mode="$1" --pgdata="$data" >/dev/null 2>&1 ||
        as_owner "$pg_bin/pg_ctl" stop --silent --wait --timeout=10 --mode=immediate --pgdata="$data" >/dev/null 2>&1 ||
        kill -KILL "$pid" 2>/dev/null || true
}

# A crashed machine leaves a pid file, and Postgres would believe whatever process has that number now. A run that was
# killed together with its keeper leaves the server too; the lock is ours, so nobody is using it.
clear_stale_server() {
    local pid
    pid=$(head -n 1 "$data/postmaster.pid" 2>/dev/null) || return 0
    case $(args_of "$pid") in
        *postgres*"$data"*)
            say "stopping the Postgres that a killed run left behind"
            stop_postgres fast
            ;;
        *) rm -f "$data/postmaster.pid" ;;
    esac
}

# The same for Redis and the temporary folder, which the killed run has noted.
clear_stale_folder() {
    local folder
    folder=$(cat "$home/tmp" 2>/dev/null) || return 0
    case $folder in */headmark-engines.??????) ;; *) return ;; esac
    case $(args_of "$(cat "$folder/redis.pid" 2>/dev/null)") in
        *"redis-server 127.0.0.1:$(cat "$folder/redis.port" 2>/dev/null)"*) stop_redis "$folder" ;;
    esac
    rm -rf "$folder"
}

# ---- the keeper ---------------------------------------------------------------------------------------------------

end_group() {
    kill -TERM -- "-$1" 2>/dev/null || return 0
    kill -CONT -- "-$1" 2>/dev/null || true
    await_end 30 running "-$1" || kill -KILL -- "-$1" 2>/dev/null || true
}

# Its input ends when the script does, however that comes; it carries the process group of the command, once that runs.
keep() {
    trap '' INT TERM HUP
    local group
    group=$(cat)
    [ -z "$group" ] || end_group "$group"
    stop_redis "$tmp"
    if [ -n "$home" ]; then
        stop_postgres fast
        rm -f "$home/tmp" "$home/urls"
    else
        stop_postgres immediate
    fi
    rm -rf "$tmp"
}

finish() {
    trap '' INT TERM HUP
    if [ -n "$keeper" ]; then
        exec 9>&-
        wait "$keeper" || true
    elif [ -n "$tmp" ]; then
        rm -rf "$tmp"
    fi
}

# How much room in memory the engines of tests, and what the tests write, take at most, with some to spare.
SHM_KIB=$((2 * 1024 * 1024))

# Whether there is a folder in memory with that room, and as much memory again for all else. Each test makes a database of
# hundreds of files, which takes a disk's file system a third of the time that Postgres takes for the whole test.
has_shm() {
    local room memory limit
    [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] && [ -w /dev/shm ] || return 1
    room=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
    memory=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo 2>/dev/null) || true
    # What a container may take, in bytes; `max` where it is not bound.
    limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null) || limit=max
    [ "$limit" = max ] || [ "$limit" -ge $((2 * SHM_KIB * 1024)) ] || return 1
    [ "${room:-0}" -ge "$SHM_KIB" ] && [ "${memory:-0}" -ge $((2 * SHM_KIB)) ]
}

# Sets tmp to a new folder that the owner may enter, with a path short enough for a socket's.
make_folder() {
    local parent parents=("${TMPDIR:-/tmp}" /tmp)
    if [ -z "$durable" ] && has_shm; then parents=(/dev/shm "${parents[@]}"); fi
    for parent in "${parents[@]}"; do
        [ ${#parent} -lt 64 ] || continue
        tmp=$(mktemp -d "${parent%/}/headmark-engines.XXXXXX") || continue
        [ -z "$owner" ] || chown "$owner" "$tmp"
        ! as_owner test -w "$tmp" 2>/dev/null || return 0
        rm -rf "$tmp"
    done
    tmp=''
    die "found no temporary folder that the engines' account may use"
}

start_engines() {
    unset PGDATA PGHOST PGHOSTADDR PGPORT PGUSER PGPASSWORD PGPASSFILE PGDATABASE PGOPTIONS PGSERVICE PGSSLMODE
    trap finish EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    make_folder
    if [ -n "$home" ] && ! as_owner test -x "$home"; then
        die "root cannot run Postgres on $home: it runs as $(id -un "${owner%:*}"), who may not enter that folder." \
            "Choose one that every account may enter (make run-server ENGINES_DIR=/var/tmp/headmark), or do not run as root"
    fi
    data=${home:-$tmp}/postgres
    draw_password
    mkfifo "$tmp/alive"

    # With job control, each of these gets a process group of its own, which a Ctrl-C does not reach. Those that start an
    # engine hold the keeper's pipe meanwhile, so that it never looks for an engine that is yet to come.
    set -m
    keep <"$tmp/alive" &
    keeper=$!
    exec 9>"$tmp/alive"
    if [ -n "$home" ]; then
        clear_stale_folder
        printf '%s\n' "$tmp" >"$home/tmp"
    fi
    start_postgres &
    local postgres=$!
    start_redis &
    local redis=$!
    set +m
    wait "$postgres" || exit 1
    wait "$redis" || exit 1
    postgres_url=postgres://headmark:$password@127.0.0.1:$(cat "$tmp/postgres.port")
    redis_url=redis://default:$password@127.0.0.1:$(cat "$tmp/redis.port")
}

run_command() {
    # In a group of its own the command can be ended with all that it started, but may not read from a terminal.
    if [ -t 0 ]; then exec </dev/null; fi
    set -m
    (exec "$@" 8>&- 9>&-) &
    local command=$! status interrupted=1
    set +m
    printf '%s\n' "$command" >&9
    # Ctrl-C goes to the command, which may have something to finish and to say.
    trap 'interrupted=1; kill -INT -- "-$command" 2>/dev/null || true' INT
    while [ -n "$interrupted" ]; do
        interrupted='' status=0
        wait "$command" || status=$?
    done
    exit "$status"
}

# ---- the uses -----------------------------------------------------------------------------------------------------

home='' tmp='' keeper='' password='' durable='' buffers=128MB with_pooler='' pgbouncer=''

with_engines() {
    while :; do
        case ${1:-} in
            # For measuring: what Postgres advises is a quarter of the memory, which is touched only as far as it is used.
            --durable) durable=1 buffers=2GB ;;
            --pooler) with_pooler=1 ;;
            *) break ;;
        esac
        shift
    done
    if [ "${1:-}" != -- ] || [ $# -lt 2 ]; then misused; fi
    shift
    find_wanted || install_engines
    if [ -n "$pgbouncer" ]; then export PATH=$PATH:${pgbouncer%/*}; fi
    find_owner
    start_engines
    forget_settings HEADMARK_BIN HEADMARK_TEST_LOG
    mkdir -m 755 "$tmp/files"
    export HEADMARK_TEST_POSTGRES=$postgres_url/postgres HEADMARK_TEST_REDIS=$redis_url HEADMARK_TEST_DIR=$tmp/files
    export HEADMARK_PG_BIN=$pg_bin
    if [ -n "$owner" ]; then export HEADMARK_PG_OWNER=$owner; fi
    run_command "$@"
}

# Holds the lock on fd 8 as long as this script or its keeper lives.
lock_home() {
    exec 8>"$home/lock"
    if command -v flock >/dev/null; then
        flock --nonblock 8
    else
        perl -e 'use Fcntl ":flock"; open(my $lock, ">&=", 8) or exit 1; exit !flock($lock, LOCK_EX | LOCK_NB)'
    fi || die "another run is using $home"
}

# Makes the database of run, unless it is there from an earlier run.
make_database() {
    local address
    address="host=127.0.0.1 port=$(cat "$tmp/postgres.port") user=headmark dbname=postgres"
    printf '%s\n' "*:*:*:headmark:$password" | write_secret "$tmp/pgpass"
    ask() { as_owner env PGPASSFILE="$tmp/pgpass" "$pg_bin/psql" -tAXqc "$1" "$address"; }
    ask 'select datname from pg_database' | grep -qx headmark || ask 'create database headmark'
}

run_engines() {
    local version='' folder
    if [ "${2:-}" != -- ] || [ $# -lt 3 ]; then misused; fi
    (umask 022 && mkdir -p "$1")
    home=$(cd "$1" && pwd -P)
    [ -w "$home" ] || die "may not write to $home"
    shift 2
    lock_home
    durable=1
    if [ -e "$home/postgres" ]; then version=$(cat "$home/postgres/PG_VERSION"); fi
    if ! find_engines "$version"; then
        if [ -z "$pg_bin" ] && [ -n "$version" ]; then
            die "found no Postgres $version, which made the data in $home; install it, or choose another folder"
        fi
        install_engines "$version"
    fi
    find_owner "$home/postgres"
    start_engines
    forget_stores
    export DATABASE_URL=$postgres_url/headmark REDIS_URL=$redis_url
    make_database
    rm -f "$home/urls"
    (umask 077 && printf '%s\n' "DATABASE_URL=$DATABASE_URL" "REDIS_URL=$REDIS_URL" >"$home/urls")
    say "DATABASE_URL and REDIS_URL are in $home/urls while this runs"
    run_command "$@"
}

remove_engines() {
    [ $# = 1 ] || misused
    [ -e "$1/lock" ] || return 0
    home=$(cd "$1" && pwd -P)
    lock_home
    rm -rf "$home/postgres" "$home/postgres.new" "$home/tmp" "$home/urls" "$home/lock"
    rmdir "$home" || true
}

misused() {
    usage >&2
    exit 2
}

case ${1:-} in
    with) shift && with_engines "$@" ;;
    run) shift && run_engines "$@" ;;
    remove) shift && remove_engines "$@" ;;
    install)
        with_pooler=1
        if ! find_wanted; then install_engines; fi
        say "Postgres $pg_major in $pg_bin, Redis as $redis_server"
        ;;
    -h | --help | help) usage ;;
    *) misused ;;
esac
