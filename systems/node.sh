#!/bin/sh
# Starts, stops and probes the one node of this host. Installed by systems/wrackline/system.py.
#
#   node.sh start PYTHON PORT WAIT_S [ARGUMENT...]   stop WAIT_S   kill   pause   resume   pid
#
# Exit codes: 0 done (or so already), 3 the node died while starting, 4 the port is taken, 5 it did not stop
# in time, 6 it does not run. What is said on stdout after an error are the last lines of the node's log.

PID_FILE=/run/wrackline/broker.pid
LOG=/var/log/wrackline/broker.log
CONFIG=/etc/wrackline/broker.toml
LIB=/opt/wrackline/lib

# The process id, when the process of the pid file is alive and ours. A zombie has no command line, a
# recycled id another one.
running() {
    pid=$(cat "$PID_FILE" 2>/dev/null) || return 1
    [ -n "$pid" ] && tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qxF "$CONFIG"
}

listening() {
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        awk -v port="$(printf ':%04X' "$1")" \
            '$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 } END { exit !found }'
}

log_tail() { tail -n 15 "$LOG" 2>/dev/null; }

start() {
    python=$1 port=$2 polls=$(($3 * 50))
    shift 3
    running && return 0
    listening "$port" && return 4
    mkdir -p /run/wrackline /var/log/wrackline
    ulimit -n 65536 2>/dev/null
    cd /
    PYTHONPATH=$LIB PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
        setsid "$python" -m wrackline.broker --config "$CONFIG" "$@" >>"$LOG" 2>&1 </dev/null &
    child=$!
    echo $child >"$PID_FILE.new" && mv "$PID_FILE.new" "$PID_FILE"
    # Alive when the time is up is good enough: a node may listen only once it knows its controller.
    while [ $polls -gt 0 ]; do
        kill -0 $child 2>/dev/null || { log_tail; return 3; }
        listening "$port" && return 0
        polls=$((polls - 1))
        sleep 0.02
    done
    running || { log_tail; return 3; }
}

gone_within() {
    polls=$(($1 * 50))
    while running; do
        [ $polls -gt 0 ] || return 5
        polls=$((polls - 1))
        sleep 0.02
    done
}

case $1 in
start) shift; start "$@" ;;
stop) running || exit 0; kill -TERM "$pid"; gone_within "$2" || { log_tail; exit 5; } ;;
kill) running || exit 0; kill -KILL "$pid"; gone_within 5 ;;
pause) running || exit 6; kill -STOP "$pid" ;;
resume) running || exit 6; kill -CONT "$pid" ;;
pid) running && echo "$pid"; exit 0 ;;
*) echo "node.sh: unknown command: $1" >&2; exit 2 ;;
esac
