#!/bin/sh
# Starts, stops and probes the one node of this host. Installed by systems/common/node_script.py.
#
#   node.sh start PORT WAIT_S   stop WAIT_S   kill   pause   resume   pid
#
# What is started is the shell script PROGRAM: its last command is an exec, and the path of the node's
# configuration, a file in CONFIGS, is an argument of what it executes.
# Exit codes: 0 done (or so already), 3 the node died while starting, 4 the port is taken, 5 it did not stop
# in time, 6 it does not run. After an error stdout holds the last lines of the node's log.

PID_FILE=/run/wrackline/broker.pid
LOG=/var/log/wrackline/broker.log
PROGRAM=/opt/wrackline/program
CONFIGS=/etc/wrackline

# The process id, when the process of the pid file is alive and ours. A zombie has no command line, a
# recycled id another one.
running() {
    pid=$(cat "$PID_FILE" 2>/dev/null) || return 1
    [ -n "$pid" ] && tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qx "$PROGRAM\|$CONFIGS/.*"
}

listening() {
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        awk -v port="$(printf ':%04X' "$1")" \
            '$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 } END { exit !found }'
}

log_tail() { tail -n 15 "$LOG" 2>/dev/null; }

# Whole seconds since the machine began, without any program.
now() { read -r uptime _ </proc/uptime; echo "${uptime%%.*}"; }

start() {
    port=$1 until=$(($(now) + $2)) polls=0
    running && return 0
    # A node that was killed loses its command line first and its port a moment later.
    while listening "$port"; do
        [ $polls -lt 100 ] || return 4
        polls=$((polls + 1))
        sleep 0.02
    done
    polls=0
    mkdir -p /run/wrackline /var/log/wrackline
    ulimit -n 65536 2>/dev/null
    cd /
    setsid sh "$PROGRAM" >>"$LOG" 2>&1 </dev/null &
    child=$!
    echo $child >"$PID_FILE.new" && mv "$PID_FILE.new" "$PID_FILE"
    # Alive when the time is up is good enough: a node may listen only once it knows its controller.
    while [ "$(now)" -le "$until" ]; do
        kill -0 $child 2>/dev/null || { log_tail; return 3; }
        listening "$port" && return 0
        polls=$((polls + 1))
        # To look costs the processor that a slow program starts on.
        [ $polls -lt 50 ] && sleep 0.02 || sleep 0.1
    done
    running || { log_tail; return 3; }
}

gone_within() {
    until=$(($(now) + $1))
    while running; do
        [ "$(now)" -le "$until" ] || return 5
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
