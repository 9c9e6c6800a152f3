#!/bin/sh
# Starts, stops and probes the one node of this host. Installed by systems/common/node_script.py.
#
#   node.sh start [ADDRESS:]PORT WAIT_S   stop WAIT_S   kill   pause   resume   pid   code PID
#
# It is ROOT/opt/wrackline/node.sh, called by this path; ROOT is empty where the host is a whole machine, and the
# host's folder where several share one. Those are given the ADDRESS (IPv4) that the node listens at.
#
# What is started is the shell script PROGRAM: its last command is an exec, and the path of the node's
# configuration, a file in CONFIGS, is an argument of what it executes.
# Exit codes: 0 done (or so already), 3 the node died while starting, 4 the port is taken, 5 it did not stop
# in time, 6 it does not run. After an error stdout holds the last lines of the node's log. `code` prints the exit
# code of a node's process that is over, and nothing where the machine lost its power first.

ROOT=${0%/opt/wrackline/node.sh}
PID_FILE=$ROOT/run/wrackline/broker.pid
CODES=$ROOT/run/wrackline/exit-codes
LOG=$ROOT/var/log/wrackline/broker.log
PROGRAM=$ROOT/opt/wrackline/program
CONFIGS=$ROOT/etc/wrackline

# The process id, when the process of the pid file is alive and ours. A zombie has no command line, a
# recycled id another one.
running() {
    pid=$(cat "$PID_FILE" 2>/dev/null) || return 1
    [ -n "$pid" ] && tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | {
        while IFS= read -r argument; do
            case $argument in "$PROGRAM" | "$CONFIGS"/*) exit 0 ;; esac
        done
        exit 1
    }
}

# Of a socket at an address of IPv4, also in its IPv6 form, the kernel's tables have the address at the end, in the
# processor's order of bytes; of one at every address, zeros.
listening() {
    address='' colon_port=$(printf ':%04X' "${1##*:}")
    case $1 in *:*)
        bytes=$(echo "${1%:*}" | tr . ' ')
        [ "$(printf '\1\0' | od -An -tu2 | tr -d ' ')" = 1 ] &&
            bytes=$(echo "$bytes" | awk '{ print $4, $3, $2, $1 }')
        address=$(printf '%02X%02X%02X%02X' $bytes) ;;
    esac
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v port="$colon_port" -v address="$address" '
        $4 == "0A" && substr($2, length($2) - 4) == port {
            at = substr($2, 1, length($2) - 5)
            if (address == "" || at ~ (address "$") || at ~ /^0+$/) found = 1
        } END { exit !found }'
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
    mkdir -p "$ROOT/run/wrackline" "$ROOT/var/log/wrackline"
    ulimit -n 65536 2>/dev/null
    cd /
    rm -f "$PID_FILE"
    # A shell waits for the node, for nobody else learns its exit code.
    setsid sh -c '
        sh "$1" &
        echo $! >"$2.new" && mv "$2.new" "$2"
        wait $!
        echo "$! $?" >>"$3"
    ' node.sh "$PROGRAM" "$PID_FILE" "$CODES" >>"$LOG" 2>&1 </dev/null &
    shell=$!
    until child=$(cat "$PID_FILE" 2>/dev/null); do
        kill -0 $shell 2>/dev/null || { log_tail; return 3; }
        sleep 0.01
    done
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
code) awk -v pid="$2" '$1 == pid { code = $2 } END { print code }' "$CODES" 2>/dev/null; exit 0 ;;
*) echo "node.sh: unknown command: $1" >&2; exit 2 ;;
esac
